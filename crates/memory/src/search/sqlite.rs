//! By words: BM25, with titles counting more than text.

use hob_core::MemoryError;
use hob_store::MemoryStore;
use hob_store::memory::{Hit, WordQuery};

use crate::blocking::blocking;
use crate::failure::store_failed;

pub(super) async fn find(store: &MemoryStore, question: &str, count: usize) -> Result<Vec<Hit>, MemoryError> {
    let Some(query) = WordQuery::of(question) else { return Ok(Vec::new()) };
    let store = store.clone();
    blocking(move || store.find_words(&query, count)).await?.map_err(store_failed)
}

/// The same, without what has less than half of the question's words.
pub(super) async fn find_covering(
    store: &MemoryStore,
    question: &str,
    count: usize,
) -> Result<Vec<Hit>, MemoryError> {
    let Some(query) = WordQuery::of(question) else { return Ok(Vec::new()) };
    let store = store.clone();
    let found = blocking(move || store.covering(&query, &store.find_words(&query, count)?)).await?;
    found.map_err(store_failed)
}
