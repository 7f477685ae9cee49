//! The three kinds of search. Each returns chunks, best first; their text is read once at the end.

mod hybrid;
mod vector;
mod words;

use std::sync::Arc;

use hob_core::CollectionSet;
use hob_db::DbResult;

use crate::embed::{EmbedderDownload, EmbedderSource};
use crate::open::{blocking, store_failed};
use crate::relevance::RelevanceFloor;
use crate::store::{ChunkHit, MemorySnapshot, MemoryStore, StoredPassage};
use crate::types::{MemoryBackend, MemoryError, Passage};
use crate::word_query::WordQuery;
use vector::QuestionVector;
use words::WordScore;

/// The most passages of a search.
pub const MAX_PASSAGES: usize = 100;

/// The longest question in bytes; the rest is ignored.
const MAX_QUESTION: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchPurpose {
    /// The caller asked for passages: those that are relevant, or the best by words if none is.
    UserRequest,
    /// The caller wants to see the best passages, even if they are not relevant.
    AllPassages,
    /// Relevant passages are added to a question unasked. One without a topic gets none.
    Context,
}

#[derive(Debug, Clone)]
pub struct SearchRequest<'a> {
    pub question: &'a str,
    pub count: usize,
    pub backend: MemoryBackend,
    /// Whether the embedding model may be downloaded for it.
    pub download: EmbedderDownload,
    pub purpose: SearchPurpose,
    /// What makes a passage relevant.
    pub floor: RelevanceFloor,
    pub collections: CollectionSet,
}

/// The best passages of the collections for a question, from one snapshot.
pub async fn search(
    store: &Arc<dyn MemoryStore>,
    embedders: &dyn EmbedderSource,
    search: SearchRequest<'_>,
) -> Result<Vec<Passage>, MemoryError> {
    let SearchRequest { question, count, backend, download, purpose, floor, collections } = search;
    let question = &question[..question.floor_char_boundary(MAX_QUESTION)];
    let count = count.min(MAX_PASSAGES);
    let word_query = WordQuery::of(question);
    let has_topic = word_query.as_ref().is_some_and(WordQuery::has_topic);
    let is_nothing = question.trim().is_empty() || count == 0 || collections.is_empty();
    if is_nothing || (purpose == SearchPurpose::Context && !has_topic) {
        return Ok(Vec::new());
    }
    let question_vector = match backend {
        MemoryBackend::Sqlite => None,
        MemoryBackend::Vector | MemoryBackend::Hybrid => {
            let asked = Arc::clone(store);
            // First, because the vector of the question may need a download. A hybrid search may find words, for example of a note whose
            // vector is just being replaced.
            let needs_vectors = backend == MemoryBackend::Vector;
            if needs_vectors && !blocking(move || asked.has_vectors()).await?.map_err(store_failed)? {
                return Err(MemoryError::NotEmbedded);
            }
            Some(QuestionVector::of(question, embedders, download).await?)
        }
    };
    let terms = word_query.as_ref().map_or(0, |query| query.terms().len());
    let floor = floor_for(floor, word_query.as_ref(), purpose);
    let store = Arc::clone(store);
    blocking(move || {
        let mut found = None;
        let searched = store.snapshot_of(&collections, &mut |snapshot| {
            let word_query = word_query.as_ref();
            let used = if purpose == SearchPurpose::AllPassages { RelevanceFloor::NONE } else { floor };
            let share = used.share_of(terms);
            let hits = match (backend, &question_vector, purpose) {
                (MemoryBackend::Hybrid, Some(vector), SearchPurpose::AllPassages) => {
                    hybrid::find_all(snapshot, word_query, vector, count, floor)?
                }
                (MemoryBackend::Hybrid, Some(vector), SearchPurpose::UserRequest) => {
                    hybrid::find_on_request(snapshot, word_query, vector, count, floor)?
                }
                (MemoryBackend::Hybrid, Some(vector), SearchPurpose::Context) => {
                    hybrid::find(snapshot, word_query, vector, count, floor)?
                }
                (_, Some(vector), _) => vector::find(snapshot, vector, count, used.similarity)?,
                (_, None, SearchPurpose::UserRequest) => {
                    Some(words::find_on_request(snapshot, word_query, count, share, WordScore::Bm25)?)
                }
                (_, None, _) => Some(words::find(snapshot, word_query, count, share, WordScore::Bm25)?),
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

/// The floor with the similarity that this question requires.
fn floor_for(floor: RelevanceFloor, query: Option<&WordQuery>, purpose: SearchPurpose) -> RelevanceFloor {
    let words = query.map_or(0, WordQuery::word_count);
    let similarity = match purpose {
        SearchPurpose::Context => floor.similarity_to(words),
        SearchPurpose::UserRequest | SearchPurpose::AllPassages => floor.similarity_on_request(words),
    };
    RelevanceFloor { similarity, ..floor }
}

fn read(
    snapshot: &dyn MemorySnapshot,
    hits: &[ChunkHit],
    query: Option<&WordQuery>,
) -> DbResult<Vec<Passage>> {
    let chunks: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    let stored = snapshot.passages(&chunks, query)?;
    let score = |chunk| hits.iter().find(|hit| hit.chunk == chunk).map_or(0.0, |hit| hit.score);
    Ok(stored.into_iter().map(|stored| passage(score(stored.chunk), stored)).collect())
}

fn passage(score: f64, stored: StoredPassage) -> Passage {
    let StoredPassage { source, title, text, position, place, line, end_line, tokens, marks, .. } = stored;
    Passage { source, title, text, position, place, line, end_line, tokens, score, marks }
}

#[cfg(test)]
mod search_tests;
