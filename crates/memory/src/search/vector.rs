//! By meaning: the chunks whose vectors point where the question's does.

use hob_core::MemoryError;
use hob_store::StoreError;
use hob_store::memory::{Hit, Snapshot};

use crate::embed::EmbedderSource;

/// The least cosine similarity of a passage that has to do with a question. Something is nearest to any question: with
/// all-MiniLM-L6-v2 the passage that answers one of the judged questions has 0.46 (known) or 0.38 (held_out) in the median and 0.20 or
/// more in 95 of 100 cases, while the nearest one to "tell me a joke" or "hello" has 0.12 to 0.23. Fused with words, recall@5 is with this
/// floor 0.98, 0.90 and 1.00 on `known`, `held_out` and `confirming`, and without it 0.99, 0.89 and 1.00. Other models have higher
/// similarities throughout, so that less is left out.
pub(super) const LEAST_SIMILARITY: f64 = 0.20;

/// A question as a vector.
pub(super) struct Meaning {
    pub(super) model: String,
    vector: Vec<f32>,
}

impl Meaning {
    pub(super) async fn of(question: &str, embedders: &dyn EmbedderSource) -> Result<Self, MemoryError> {
        let embedder = embedders.embedder().await?;
        let vectors = embedder.embed(vec![question.to_owned()]).await?;
        // There is exactly one, or the embedder had failed.
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(Meaning { model: embedder.model, vector })
    }
}

/// `None` when no chunk has a vector of the question's model.
pub(super) fn find(
    snapshot: &Snapshot<'_>,
    meaning: &Meaning,
    count: usize,
) -> Result<Option<Vec<Hit>>, StoreError> {
    snapshot.find_vectors(&meaning.model, &meaning.vector, count)
}

/// The same, without what has nothing to do with the question.
pub(super) fn find_relevant(
    snapshot: &Snapshot<'_>,
    meaning: &Meaning,
    count: usize,
) -> Result<Option<Vec<Hit>>, StoreError> {
    let mut found = find(snapshot, meaning, count)?;
    if let Some(hits) = &mut found {
        hits.retain(|hit| hit.score >= LEAST_SIMILARITY);
    }
    Ok(found)
}
