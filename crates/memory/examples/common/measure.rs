//! Adds vectors to a memory, searches it, and measures both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_core::CollectionSet;
use hob_memory::search::{SearchPurpose, SearchRequest, search};
use hob_memory::store::{MemoryStore, NewVector, SourceScope};
use hob_memory::{EmbedderDownload, MemoryBackend, RelevanceFloor};

use super::vectors::{MODEL, Oracle, vector};

/// Questions per kind, each asked once to warm up and once to measure.
pub const QUESTIONS: usize = 200;

/// Passages per search.
pub const TOP_K: usize = 10;

/// Vectors that are written at once.
const BATCH: usize = 2_000;

/// Questions whose nearest vectors are computed by comparing all.
const JUDGED: usize = 20;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub struct MeasuredMemory {
    pub store: Arc<dyn MemoryStore>,
    runtime: tokio::runtime::Runtime,
}

impl MeasuredMemory {
    pub fn new(store: Arc<dyn MemoryStore>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        Ok(MeasuredMemory { store, runtime })
    }

    /// Adds the missing vectors, and returns how long the database took.
    pub fn add_vectors(&self) -> Result<Duration> {
        let (mut last, mut spent) = (0, Duration::ZERO);
        loop {
            let missing = self.store.without_vector(&SourceScope::ALL, MODEL, last, BATCH)?;
            let Some(newest) = missing.last() else { return Ok(spent) };
            last = newest.chunk;
            let new: Vec<NewVector> = missing
                .iter()
                .map(|chunk| NewVector { chunk: chunk.chunk, vector: vector(chunk.chunk) })
                .collect();
            let began = Instant::now();
            self.store.add_vectors(MODEL, &new)?;
            spent += began.elapsed();
        }
    }

    pub fn time(&self, backend: MemoryBackend, questions: &[String], oracle: &Oracle) -> Result<SearchTimes> {
        let mut times = Vec::with_capacity(questions.len());
        for is_warm in [false, true] {
            for question in questions {
                let began = Instant::now();
                let wanted = SearchRequest {
                    question,
                    count: TOP_K,
                    backend,
                    download: EmbedderDownload::Refused,
                    purpose: SearchPurpose::UserRequest,
                    floor: RelevanceFloor::default(),
                    collections: CollectionSet::All,
                };
                self.runtime.block_on(search(&self.store, oracle, wanted))?;
                if is_warm {
                    times.push(began.elapsed());
                }
            }
        }
        times.sort_unstable();
        Ok(SearchTimes(times))
    }

    /// The share of the nearest vectors that are found.
    pub fn recall(&self, oracle: &Oracle) -> Result<f64> {
        let mut found = 0;
        for number in 0..JUDGED {
            let question = oracle.question(number);
            let near = self.store.find_vectors(MODEL, &question, TOP_K)?.unwrap_or_default();
            let truth = oracle.nearest(&question, TOP_K);
            found += near.iter().filter(|hit| truth.contains(&hit.chunk)).count();
        }
        Ok(found as f64 / (JUDGED * TOP_K) as f64)
    }
}

/// In increasing order.
pub struct SearchTimes(Vec<Duration>);

impl SearchTimes {
    /// The time in milliseconds within which this share of the searches ended.
    pub fn milliseconds(&self, share: f64) -> f64 {
        let index = (self.0.len().saturating_sub(1) as f64 * share) as usize;
        self.0.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}
