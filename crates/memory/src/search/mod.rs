//! The three ways to find a passage again. Each gives chunks, best first; what they say is read at the end, once.

mod hybrid;
mod vector;
mod words;

use hob_db::DatabaseError;

use crate::WordQuery;
use crate::embed::EmbedderSource;
use crate::open::{blocking, store_failed};
use crate::store::{Hit, MemoryStore, Snapshot, StoredPassage};
use crate::types::{MemoryBackend, MemoryError, Passage};
use vector::Meaning;

/// The most passages anybody gets.
pub const MOST_PASSAGES: usize = 100;

/// The longest question, in bytes; the rest of a longer one is not looked at.
const MOST_QUESTION: usize = 16 * 1024;

/// Who looks for passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody who asked for passages, sees what they are, and can judge them.
    Asked,
    /// A model is to be told of them although nobody asked for them: what has nothing to do with the question stays at home.
    Unasked,
}

/// What is looked for, and how.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    pub question: &'a str,
    pub count: usize,
    pub backend: MemoryBackend,
    pub purpose: Purpose,
}

/// The passages that fit a question best. All of them are of one moment, whatever is indexed meanwhile.
pub async fn search(
    store: &MemoryStore,
    embedders: &dyn EmbedderSource,
    search: Search<'_>,
) -> Result<Vec<Passage>, MemoryError> {
    let Search { question, count, backend, purpose } = search;
    let question = &question[..question.floor_char_boundary(MOST_QUESTION)];
    let count = count.min(MOST_PASSAGES);
    let word_query = WordQuery::of(question);
    let is_telling = word_query.as_ref().is_some_and(WordQuery::is_telling);
    if question.trim().is_empty() || count == 0 || (purpose == Purpose::Unasked && !is_telling) {
        return Ok(Vec::new());
    }
    let meaning = match backend {
        MemoryBackend::Sqlite => None,
        MemoryBackend::Vector | MemoryBackend::Hybrid => Some(Meaning::of(question, embedders).await?),
    };
    let store = store.clone();
    blocking(move || {
        let found = store.snapshot(|snapshot| {
            let word_query = word_query.as_ref();
            let hits = match (backend, &meaning, purpose) {
                (MemoryBackend::Hybrid, Some(meaning), _) => {
                    hybrid::find(snapshot, word_query, meaning, count)?
                }
                (_, Some(meaning), Purpose::Asked) => vector::find(snapshot, meaning, count)?,
                (_, Some(meaning), Purpose::Unasked) => vector::find_relevant(snapshot, meaning, count)?,
                (_, None, Purpose::Asked) => Some(words::find(snapshot, word_query, count)?),
                (_, None, Purpose::Unasked) => Some(words::find_relevant(snapshot, word_query, count)?),
            };
            hits.map(|hits| read(snapshot, &hits, word_query)).transpose()
        });
        let no_vectors =
            || MemoryError::NoVectors { model: meaning.map(|known| known.model).unwrap_or_default() };
        found.map_err(store_failed)?.ok_or_else(no_vectors)
    })
    .await?
}

fn read(
    snapshot: &Snapshot<'_>,
    hits: &[Hit],
    query: Option<&WordQuery>,
) -> Result<Vec<Passage>, DatabaseError> {
    let chunks: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    let stored = snapshot.passages(&chunks, query)?;
    let score = |chunk| hits.iter().find(|hit| hit.chunk == chunk).map_or(0.0, |hit| hit.score);
    Ok(stored.into_iter().map(|stored| passage(score(stored.chunk), stored)).collect())
}

fn passage(score: f64, stored: StoredPassage) -> Passage {
    let StoredPassage { source, title, text, position, place, line, end_line, tokens, marks, .. } = stored;
    Passage { source, title, text, position, place, line, end_line, tokens, score, marks }
}
