//! By meaning: the chunks whose vectors point where the question's does.

use hob_core::MemoryError;
use hob_store::MemoryStore;
use hob_store::memory::Hit;

use crate::blocking::blocking;
use crate::embed::EmbedderSource;
use crate::failure::store_failed;

pub(super) async fn find(
    store: &MemoryStore,
    embedders: &dyn EmbedderSource,
    question: &str,
    count: usize,
) -> Result<Vec<Hit>, MemoryError> {
    let embedder = embedders.embedder().await?;
    let vectors = embedder.embed(vec![question.to_owned()]).await?;
    // There is exactly one, or the embedder had failed.
    let vector = vectors.into_iter().next().unwrap_or_default();
    let (store, model) = (store.clone(), embedder.model.clone());
    let found = blocking(move || store.find_vectors(&model, &vector, count)).await?.map_err(store_failed)?;
    found.ok_or(MemoryError::NoVectors { model: embedder.model })
}
