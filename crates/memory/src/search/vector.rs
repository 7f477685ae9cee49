//! Vector search: the chunks whose vectors are similar to the question's.

use hob_db::DbResult;

use crate::embed::{EmbedderDownload, EmbedderSource};
use crate::store::{ChunkHit, MemorySnapshot};
use crate::types::MemoryError;

/// A question as a vector.
pub(super) struct QuestionVector {
    pub(super) model: String,
    vector: Vec<f32>,
}

impl QuestionVector {
    pub(super) async fn of(
        question: &str,
        embedders: &dyn EmbedderSource,
        download: EmbedderDownload,
    ) -> Result<Self, MemoryError> {
        let embedder = embedders.embedder(download).await?;
        let vectors = embedder.embed(vec![question.to_owned()]).await?;
        // The embedder returns exactly one.
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(QuestionVector { model: embedder.model, vector })
    }
}

/// The nearest chunks that are at least this similar; any of them for 0. `None` if no chunk has a vector of this model.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    question: &QuestionVector,
    count: usize,
    similarity: f64,
) -> DbResult<Option<Vec<ChunkHit>>> {
    let mut found = snapshot.find_vectors(&question.model, &question.vector, count)?;
    if let Some(hits) = found.as_mut().filter(|_| similarity > 0.0) {
        hits.retain(|hit| hit.score >= similarity);
    }
    Ok(found)
}
