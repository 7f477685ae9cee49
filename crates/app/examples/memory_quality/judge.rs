//! Runs a question on every backend and measures the quality of the results.

use hob_core::CollectionSet;
use hob_memory::{MemoryBackend, MemoryQuery, MemoryService, Passage};
use serde::Serialize;

use crate::Result;
use crate::set::{Question, Set};

/// Passages that count.
const TOP: usize = 5;

/// Passages among which the first right one is searched. Not more than the fusion uses for five passages, because that
/// would measure another fusion.
const DEPTH: usize = 20;

/// How well one backend answered one question.
#[derive(Clone, Copy, Serialize)]
pub struct Answer {
    /// The share of the right files among the first five passages.
    pub recall_at_5: f64,
    /// The rank of the first right passage, from 1.
    pub rank: Option<usize>,
}

impl Answer {
    pub fn reciprocal_rank(&self) -> f64 {
        self.rank.map_or(0.0, |rank| 1.0 / rank as f64)
    }
}

#[derive(Serialize)]
pub struct Answered {
    #[serde(flatten)]
    pub question: Question,
    pub words: Answer,
    pub vector: Answer,
    pub hybrid: Answer,
}

impl Answered {
    pub fn by(&self, backend: MemoryBackend) -> Answer {
        match backend {
            MemoryBackend::Sqlite => self.words,
            MemoryBackend::Vector => self.vector,
            MemoryBackend::Hybrid => self.hybrid,
        }
    }
}

pub async fn ask(memory: &MemoryService, set: &Set, question: &Question) -> Result<Answered> {
    Ok(Answered {
        question: question.clone(),
        words: answer(memory, set, question, MemoryBackend::Sqlite).await?,
        vector: answer(memory, set, question, MemoryBackend::Vector).await?,
        hybrid: answer(memory, set, question, MemoryBackend::Hybrid).await?,
    })
}

async fn answer(
    memory: &MemoryService,
    set: &Set,
    question: &Question,
    backend: MemoryBackend,
) -> Result<Answer> {
    let found = search(memory, question, backend, DEPTH).await?;
    let first: Vec<&str> =
        found.iter().take(TOP).filter_map(|passage| set.answer(question, passage)).collect();
    let recalled = question.sources.iter().filter(|source| first.contains(&source.as_str())).count();
    let right = found.iter().position(|passage| set.answer(question, passage).is_some());
    Ok(Answer {
        recall_at_5: recalled as f64 / question.sources.len() as f64,
        rank: right.map(|index| index + 1),
    })
}

async fn search(
    memory: &MemoryService,
    question: &Question,
    backend: MemoryBackend,
    top_k: usize,
) -> Result<Vec<Passage>> {
    let query = MemoryQuery {
        text: question.question.clone(),
        top_k,
        backend: Some(backend),
        collections: CollectionSet::All,
    };
    Ok(memory.search_all(&query).await?.passages)
}

/// Both result lists for a question, as the fusion gets them.
#[derive(Serialize)]
pub struct Listed {
    #[serde(flatten)]
    question: Question,
    words: Vec<Entry>,
    meaning: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    source: String,
    position: u32,
    score: f64,
    is_right: bool,
}

pub async fn listed(memory: &MemoryService, set: &Set, question: &Question) -> Result<Listed> {
    /// As many as any fusion would need.
    const LISTED: usize = 100;
    let entry = |passage: Passage| Entry {
        is_right: set.answer(question, &passage).is_some(),
        source: passage.source,
        position: passage.position,
        score: passage.score,
    };
    let words = search(memory, question, MemoryBackend::Sqlite, LISTED).await?;
    let meaning = search(memory, question, MemoryBackend::Vector, LISTED).await?;
    Ok(Listed {
        question: question.clone(),
        words: words.into_iter().map(entry).collect(),
        meaning: meaning.into_iter().map(entry).collect(),
    })
}
