//! Vector search: the chunks whose vectors are similar to the question's.

use hob_db::DatabaseError;

use crate::embed::EmbedderSource;
use crate::store::{ChunkHit, MemorySnapshot};
use crate::types::MemoryError;

/// The least cosine similarity of a relevant passage, because some vector is always the nearest. Estimated with all-MiniLM-L6-v2
/// on the judged sets `known`, `held_out` and `confirming`, outside of the bench and with simpler chunks: of the right passages
/// among the first five, 95 of 100 have 0.25, 0.22 and 0.20 or more. Fused with words, the share of questions with a right file
/// among the first five is 0.98, 0.90 and 1.00 with this minimum and 0.99, 0.89 and 1.00 without; at 0.25 it is 0.97, 0.87 and
/// 0.92. An unrelated question still gets 1.6, 3.8 and 1.4 passages instead of 5. All three sets were seen when it was chosen.
/// Other models need their own minimum.
pub(super) const LEAST_SIMILARITY: f64 = 0.20;

/// A question as a vector.
pub(super) struct QuestionVector {
    pub(super) model: String,
    vector: Vec<f32>,
}

impl QuestionVector {
    pub(super) async fn of(question: &str, embedders: &dyn EmbedderSource) -> Result<Self, MemoryError> {
        let embedder = embedders.embedder().await?;
        let vectors = embedder.embed(vec![question.to_owned()]).await?;
        // The embedder returns exactly one.
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(QuestionVector { model: embedder.model, vector })
    }
}

/// `None` if no chunk has a vector of this model.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    question: &QuestionVector,
    count: usize,
) -> Result<Option<Vec<ChunkHit>>, DatabaseError> {
    snapshot.find_vectors(&question.model, &question.vector, count)
}

/// Without irrelevant passages.
pub(super) fn find_relevant(
    snapshot: &dyn MemorySnapshot,
    question: &QuestionVector,
    count: usize,
) -> Result<Option<Vec<ChunkHit>>, DatabaseError> {
    let mut found = find(snapshot, question, count)?;
    if let Some(hits) = &mut found {
        hits.retain(|hit| hit.score >= LEAST_SIMILARITY);
    }
    Ok(found)
}
