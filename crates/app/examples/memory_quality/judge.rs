//! Runs a question on every backend and measures the quality of the results.

use hob_core::{CollectionSet, RunEvents};
use hob_memory::{MemoryBackend, MemoryQuery, MemoryService, Passage, SearchPurpose};
use serde::Serialize;

use crate::Result;
use crate::set::{Question, Set};

/// Passages that count, and that callers get by default.
const TOP: usize = 5;

/// Passages among which the first right one is searched. Not more than the fusion uses for five passages, because that
/// would measure another fusion.
const DEPTH: usize = 20;

/// How a question is searched.
#[derive(Clone, Copy)]
pub struct SearchMode {
    pub backend: MemoryBackend,
    pub purpose: SearchPurpose,
}

impl SearchMode {
    fn all(backend: MemoryBackend) -> Self {
        SearchMode { backend, purpose: SearchPurpose::AllPassages }
    }

    /// By words, what is relevant depends on how many passages the caller asks for, so that number is the usual one.
    fn passages(self) -> usize {
        match self.purpose {
            SearchPurpose::AllPassages => DEPTH,
            SearchPurpose::UserRequest | SearchPurpose::Context => TOP,
        }
    }
}

/// How well one search answered one question.
#[derive(Clone, Copy, Serialize)]
pub struct Answer {
    /// The share of the right files among the first five passages.
    pub recall_at_5: f64,
    /// The rank of the first right passage, from 1.
    pub rank: Option<usize>,
    /// The number of passages, up to five.
    pub passages: usize,
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
        words: answer(memory, set, question, SearchMode::all(MemoryBackend::Sqlite)).await?,
        vector: answer(memory, set, question, SearchMode::all(MemoryBackend::Vector)).await?,
        hybrid: answer(memory, set, question, SearchMode::all(MemoryBackend::Hybrid)).await?,
    })
}

pub async fn answer(
    memory: &MemoryService,
    set: &Set,
    question: &Question,
    mode: SearchMode,
) -> Result<Answer> {
    let found = search(memory, question, mode, mode.passages()).await?;
    let first: Vec<&str> =
        found.iter().take(TOP).filter_map(|passage| set.answer(question, passage)).collect();
    let recalled = question.sources.iter().filter(|source| first.contains(&source.as_str())).count();
    let right = found.iter().position(|passage| set.answer(question, passage).is_some());
    Ok(Answer {
        recall_at_5: recalled as f64 / question.sources.len() as f64,
        rank: right.map(|index| index + 1),
        passages: found.len().min(TOP),
    })
}

/// Whether the question gets a passage, right or not.
pub async fn finds_any(memory: &MemoryService, question: &Question, mode: SearchMode) -> Result<bool> {
    Ok(!search(memory, question, mode, mode.passages()).await?.is_empty())
}

async fn search(
    memory: &MemoryService,
    question: &Question,
    SearchMode { backend, purpose }: SearchMode,
    top_k: usize,
) -> Result<Vec<Passage>> {
    let query = MemoryQuery {
        text: question.question.clone(),
        top_k,
        backend: Some(backend),
        collections: CollectionSet::All,
    };
    Ok(memory.search_for(&query, purpose, &RunEvents::without_subscribers()).await?.passages)
}

pub fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len().max(1) as f64;
    numbers.sum::<f64>() / count
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
    let words = search(memory, question, SearchMode::all(MemoryBackend::Sqlite), LISTED).await?;
    let meaning = search(memory, question, SearchMode::all(MemoryBackend::Vector), LISTED).await?;
    Ok(Listed {
        question: question.clone(),
        words: words.into_iter().map(entry).collect(),
        meaning: meaning.into_iter().map(entry).collect(),
    })
}
