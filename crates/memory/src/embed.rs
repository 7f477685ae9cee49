//! Turns texts into vectors with a model of an engine. Knows nothing of which one.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{EmbedRequest, Engine, EngineError, Overlong};

use crate::index::{IndexProgress, IndexProgressFn};
use crate::open::{blocking, store_failed};
use crate::store::{ChunkText, MemoryStore, NewVector, SourceScope};
use crate::types::MemoryError;

/// Chunks per request.
const BATCH: usize = 64;

/// Chunks that are read at once. In a collection, each read looks at all of its chunks.
const READ_AT_ONCE: usize = 16 * BATCH;

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

    /// Creates the missing vectors of this model for the sources, and returns their number. Not for others: their texts may be ones
    /// that the caller may not send to the engine, or does not pay for. Finished work stays if it is dropped.
    pub async fn embed_missing(
        &self,
        store: &Arc<dyn MemoryStore>,
        sources: &SourceScope,
        progress: IndexProgressFn<'_>,
    ) -> Result<u64, MemoryError> {
        let (counted, meant, model) = (Arc::clone(store), sources.clone(), self.model.clone());
        let lacking = blocking(move || counted.count_without_vector(&meant, &model)).await?;
        let lacking = lacking.map_err(store_failed)?;
        if lacking > 0 {
            progress(IndexProgress::Vectors { done: 0, of: lacking });
        }
        let (mut last, mut done) = (0, 0);
        loop {
            let (from, meant, model) = (Arc::clone(store), sources.clone(), self.model.clone());
            let chunks = blocking(move || from.without_vector(&meant, &model, last, READ_AT_ONCE)).await?;
            let chunks = chunks.map_err(store_failed)?;
            let Some(newest) = chunks.last() else { return Ok(done) };
            last = newest.chunk;
            for chunks in chunks.chunks(BATCH) {
                let vectors = self.embed(chunks.iter().map(words).collect()).await?;
                let new = chunks.iter().zip(vectors);
                let new: Vec<NewVector> =
                    new.map(|(chunk, vector)| NewVector { chunk: chunk.chunk, vector }).collect();
                done += new.len() as u64;
                let (to, model) = (Arc::clone(store), self.model.clone());
                blocking(move || to.add_vectors(&model, &new)).await?.map_err(store_failed)?;
                // Another process may have added chunks.
                progress(IndexProgress::Vectors { done, of: lacking.max(done) });
            }
        }
    }
}

/// The topic of a chunk is often only in its headings.
fn words(chunk: &ChunkText) -> String {
    match chunk.title.as_str() {
        "" => chunk.text.clone(),
        title => format!("{title}\n{}", chunk.text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::SystemTime;

    use hob_core::CollectionName;
    use parking_lot::Mutex;

    use super::*;
    use crate::store::{NewChunk, NewSource, SourceStamp, SqliteMemoryStore};
    use crate::testing::{Given, WordVectors};
    use crate::types::PositionUnit;

    #[tokio::test]
    async fn more_chunks_than_are_read_at_once_get_a_vector_each() {
        let many = READ_AT_ONCE + BATCH + 1;
        let chunk = |number: usize| {
            let text = format!("passage {number}");
            NewChunk { title: String::new(), text, line: 1, end_line: 1, tokens: 2 }
        };
        let source = NewSource {
            collection: CollectionName::default(),
            path: "/a.md".into(),
            title: "a".into(),
            place: PositionUnit::Line,
            stamp: SourceStamp { hash: [0; 32], modified: 1, size: 1, recipe: String::new() },
            chunks: (0..many).map(chunk).collect(),
        };
        let store = SqliteMemoryStore::in_memory().unwrap();
        store.replace(&[source], SystemTime::now()).unwrap();
        let store: Arc<dyn MemoryStore> = Arc::new(store);
        let vectors = Arc::new(WordVectors::default());
        let embedder = Given(Arc::clone(&vectors)).embedder(EmbedderDownload::Refused).await.unwrap();
        let heard = Mutex::new(Vec::new());
        let listener = |progress: IndexProgress<'_>| {
            if let IndexProgress::Vectors { done, of } = progress {
                heard.lock().push((done, of));
            }
        };
        let sources = SourceScope::Path("/a.md".into());
        assert_eq!(embedder.embed_missing(&store, &sources, &listener).await.unwrap(), many as u64);
        assert_eq!(vectors.embedded.load(Ordering::Relaxed), many);
        let expected = (0..many).step_by(BATCH).chain([many]).map(|done| (done as u64, many as u64));
        assert_eq!(*heard.lock(), expected.collect::<Vec<_>>());
        assert_eq!(embedder.embed_missing(&store, &sources, &listener).await.unwrap(), 0);
    }
}
