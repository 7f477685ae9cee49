//! The three ways to find a passage again. Each gives chunks, best first; what they say is read at the end, once.

mod hybrid;
mod sqlite;
mod vector;

use hob_core::{MemoryBackend, MemoryError, Passage};
use hob_store::MemoryStore;
use hob_store::memory::{Hit, StoredPassage, WordQuery};

use crate::blocking::blocking;
use crate::embed::EmbedderSource;
use crate::failure::store_failed;

/// The most passages anybody gets.
pub const MOST_PASSAGES: usize = 100;

/// The longest question, in bytes; the rest of a longer one is not looked at.
const MOST_QUESTION: usize = 16 * 1024;

/// The passages that fit a question best.
pub async fn search(
    store: &MemoryStore,
    embedders: &dyn EmbedderSource,
    backend: MemoryBackend,
    question: &str,
    count: usize,
) -> Result<Vec<Passage>, MemoryError> {
    let question = &question[..question.floor_char_boundary(MOST_QUESTION)];
    let count = count.min(MOST_PASSAGES);
    if question.trim().is_empty() || count == 0 {
        return Ok(Vec::new());
    }
    let hits = match backend {
        MemoryBackend::Sqlite => sqlite::find(store, question, count).await?,
        MemoryBackend::Vector => vector::find(store, embedders, question, count).await?,
        MemoryBackend::Hybrid => hybrid::find(store, embedders, question, count).await?,
    };
    let (store, query) = (store.clone(), WordQuery::of(question));
    blocking(move || read(&store, &hits, query.as_ref())).await?
}

fn read(store: &MemoryStore, hits: &[Hit], query: Option<&WordQuery>) -> Result<Vec<Passage>, MemoryError> {
    let chunks: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    let stored = store.passages(&chunks, query).map_err(store_failed)?;
    let score = |chunk| hits.iter().find(|hit| hit.chunk == chunk).map_or(0.0, |hit| hit.score);
    Ok(stored.into_iter().map(|stored| passage(score(stored.chunk), stored)).collect())
}

fn passage(score: f64, stored: StoredPassage) -> Passage {
    let StoredPassage { source, title, text, position, place, line, end_line, tokens, marks, .. } = stored;
    Passage { source, title, text, position, place, line, end_line, tokens, score, marks }
}
