//! Turns texts into vectors with a model of an engine. Knows nothing of which one.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{CollectionSet, EmbedRequest, Engine, EngineError, Overlong};

use crate::index::{IndexProgress, IndexProgressFn};
use crate::open::{blocking, store_failed};
use crate::store::{ChunkText, MemoryStore, NewVector};
use crate::types::MemoryError;

/// Chunks per request.
const BATCH: usize = 64;

/// An embedding model of an engine.
#[derive(Clone)]
pub struct Embedder {
    pub engine: Arc<dyn Engine>,
    pub model: String,
}

/// Whether the model may be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderDownload {
    Allowed,
    /// The user did not ask for vectors, so a model that is not on this machine is missing.
    Refused,
}

/// Finds the model on first use.
#[async_trait]
pub trait EmbedderSource: Send + Sync {
    async fn embedder(&self, download: EmbedderDownload) -> Result<Embedder, MemoryError>;
}

pub struct NoEmbedder;

#[async_trait]
impl EmbedderSource for NoEmbedder {
    async fn embedder(&self, _: EmbedderDownload) -> Result<Embedder, MemoryError> {
        Err(MemoryError::NoEmbedder { reason: "there is none".to_owned() })
    }
}

impl Embedder {
    /// One vector per text, in order. A text that is too long is cut.
    pub async fn embed(&self, inputs: Vec<String>) -> Result<Vec<Vec<f32>>, MemoryError> {
        let count = inputs.len();
        let request = EmbedRequest {
            model: self.model.clone(),
            inputs: inputs.into(),
            overlong: Overlong::Cut,
            ..EmbedRequest::default()
        };
        let vectors = self.engine.embed(&request).await?.vectors;
        let first = vectors.first().map_or(0, Vec::len);
        if vectors.len() != count || vectors.iter().any(|vector| vector.len() != first || vector.is_empty()) {
            let reason = format!("{} vectors of {first} numbers for {count} texts", vectors.len());
            return Err(EngineError::Malformed { engine: self.engine.key().to_owned(), reason }.into());
        }
        Ok(vectors)
    }

    /// Creates the missing vectors of this model in the collections, and returns their number. Not in others: their texts may be ones
    /// that the caller may not send to the engine, or does not pay for. Finished work stays if it is dropped.
    pub async fn embed_missing(
        &self,
        store: &Arc<dyn MemoryStore>,
        collections: &CollectionSet,
        progress: IndexProgressFn<'_>,
    ) -> Result<u64, MemoryError> {
        let (counted, meant, model) = (Arc::clone(store), collections.clone(), self.model.clone());
        let lacking = blocking(move || counted.count_without_vector_in(&meant, &model)).await?;
        let lacking = lacking.map_err(store_failed)?;
        if lacking > 0 {
            progress(IndexProgress::Vectors { done: 0, of: lacking });
        }
        let (mut last, mut done) = (0, 0);
        loop {
            let (from, meant, model) = (Arc::clone(store), collections.clone(), self.model.clone());
            let chunks = blocking(move || from.without_vector_in(&meant, &model, last, BATCH)).await?;
            let chunks = chunks.map_err(store_failed)?;
            let Some(newest) = chunks.last() else { return Ok(done) };
            last = newest.chunk;
            let ids: Vec<i64> = chunks.iter().map(|chunk| chunk.chunk).collect();
            let vectors = self.embed(chunks.into_iter().map(words).collect()).await?;
            let new: Vec<NewVector> =
                ids.into_iter().zip(vectors).map(|(chunk, vector)| NewVector { chunk, vector }).collect();
            done += new.len() as u64;
            let (to, model) = (Arc::clone(store), self.model.clone());
            blocking(move || to.add_vectors(&model, &new)).await?.map_err(store_failed)?;
            // Another process may have added chunks.
            progress(IndexProgress::Vectors { done, of: lacking.max(done) });
        }
    }
}

/// The topic of a chunk is often only in its headings.
fn words(chunk: ChunkText) -> String {
    match chunk.title.as_str() {
        "" => chunk.text,
        title => format!("{title}\n{}", chunk.text),
    }
}
