//! The three ways to find a passage again. Each gives chunks, best first; what they say is read at the end, once.

mod hybrid;
mod vector;
mod words;

use std::sync::Arc;

use hob_db::DatabaseError;

use crate::embed::EmbedderSource;
use crate::open::{blocking, store_failed};
use crate::store::{ChunkHit, MemorySnapshot, MemoryStore, StoredPassage};
use crate::types::{MemoryBackend, MemoryError, Passage};
use crate::word_query::WordQuery;
use vector::QuestionVector;

/// The most passages anybody gets.
pub const MOST_PASSAGES: usize = 100;

/// The longest question, in bytes; the rest of a longer one is not looked at.
const MOST_QUESTION: usize = 16 * 1024;

/// What passages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchPurpose {
    /// The caller asked for passages, sees them, and can judge them.
    UserRequest,
    /// They go into a question although the caller did not ask for them, so passages that do not fit are dropped.
    Context,
}

/// What is looked for, and how.
#[derive(Debug, Clone, Copy)]
pub struct SearchRequest<'a> {
    pub question: &'a str,
    pub count: usize,
    pub backend: MemoryBackend,
    pub purpose: SearchPurpose,
}

/// The passages that fit a question best. All of them are of one moment, whatever is indexed meanwhile.
pub async fn search(
    store: &Arc<dyn MemoryStore>,
    embedders: &dyn EmbedderSource,
    search: SearchRequest<'_>,
) -> Result<Vec<Passage>, MemoryError> {
    let SearchRequest { question, count, backend, purpose } = search;
    let question = &question[..question.floor_char_boundary(MOST_QUESTION)];
    let count = count.min(MOST_PASSAGES);
    let word_query = WordQuery::of(question);
    let is_telling = word_query.as_ref().is_some_and(WordQuery::is_telling);
    if question.trim().is_empty() || count == 0 || (purpose == SearchPurpose::Context && !is_telling) {
        return Ok(Vec::new());
    }
    let question_vector = match backend {
        MemoryBackend::Sqlite => None,
        MemoryBackend::Vector | MemoryBackend::Hybrid => Some(QuestionVector::of(question, embedders).await?),
    };
    let store = Arc::clone(store);
    blocking(move || {
        let mut found = None;
        let searched = store.snapshot(&mut |snapshot| {
            let word_query = word_query.as_ref();
            let hits = match (backend, &question_vector, purpose) {
                (MemoryBackend::Hybrid, Some(vector), _) => {
                    hybrid::find(snapshot, word_query, vector, count)?
                }
                (_, Some(vector), SearchPurpose::UserRequest) => vector::find(snapshot, vector, count)?,
                (_, Some(vector), SearchPurpose::Context) => vector::find_relevant(snapshot, vector, count)?,
                (_, None, SearchPurpose::UserRequest) => Some(words::find(snapshot, word_query, count)?),
                (_, None, SearchPurpose::Context) => Some(words::find_relevant(snapshot, word_query, count)?),
            };
            found = hits.map(|hits| read(snapshot, &hits, word_query)).transpose()?;
            Ok(())
        });
        searched.map_err(store_failed)?;
        let model = || question_vector.map(|vector| vector.model).unwrap_or_default();
        found.ok_or_else(|| MemoryError::NoVectors { model: model() })
    })
    .await?
}

fn read(
    snapshot: &dyn MemorySnapshot,
    hits: &[ChunkHit],
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
