//! Compares the memory in SQLite and in PostgreSQL as it grows: indexing and vectors per second, size, search by words, by meaning and
//! by both, and how many of the ten nearest vectors are found. `./dev bench database memory` runs it; or
//! `memory_databases [--url URL] [SIZE...]`.
//!
//! The text and the vectors are those of `memory_scale`. Without a URL, PostgreSQL is the server of the tests, which does not wait for
//! the disk.

#[path = "../memory_scale/text.rs"]
mod text;
#[path = "../memory_scale/vectors.rs"]
mod vectors;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_db::postgres::PostgresDatabase;
use hob_memory::index::index;
use hob_memory::search::{SearchPurpose, SearchRequest, search};
use hob_memory::store::NewVector;
use hob_memory::{
    IndexOptions, MemoryBackend, MemoryStore, POSTGRES_MIGRATIONS, PostgresMemoryStore, SqliteMemoryStore,
};
use hob_testkit::PostgresServer;
use tokio_util::sync::CancellationToken;

use text::Author;
use vectors::{MODEL, Oracle, vector};

const SIZES: [usize; 2] = [10_000, 100_000];

/// Questions per kind, each asked once to warm up and once to measure.
const QUESTIONS: usize = 200;

/// Questions whose nearest vectors are computed by comparing all.
const JUDGED: usize = 20;

/// Passages per search.
const TOP_K: usize = 10;

/// Vectors that are written at once.
const BATCH: usize = 2_000;

/// Files on the disk at a time, in chunks.
const LOT: usize = 20_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let url = match arguments.next_if(|argument| argument == "--url") {
        Some(_) => Some(arguments.next().ok_or("--url needs an address")?),
        None => None,
    };
    let sizes = arguments.map(|size| size.parse()).collect::<std::result::Result<Vec<usize>, _>>()?;
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };

    println!(
        "| database | chunks | indexed/s | vectors/s | index built | size | questions p50 / p99 | keywords p50 / p99 | \
         meaning p50 / p99 | both p50 / p99 | recall@{TOP_K} |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let directory = tempfile::tempdir()?;
    let sqlite = SqliteMemoryStore::open(&directory.path().join("memory.db"))?;
    Bench::new("SQLite", Arc::new(sqlite))?.grow(directory.path(), &sizes)?;

    let test_database = match &url {
        Some(_) => None,
        None => Some(PostgresServer::shared().create_database()),
    };
    let url = url.or_else(|| test_database.as_ref().map(hob_testkit::TestDatabase::url)).unwrap_or_default();
    let postgres = PostgresDatabase::new(url.parse()?, &[POSTGRES_MIGRATIONS])?;
    let directory = tempfile::tempdir()?;
    let store = PostgresMemoryStore::new(postgres);
    if store.has_sources()? {
        return Err("the database must be empty".into());
    }
    Bench::new("PostgreSQL", Arc::new(store))?.grow(directory.path(), &sizes)
}

struct Bench {
    name: &'static str,
    store: Arc<dyn MemoryStore>,
    author: Author,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new(name: &'static str, store: Arc<dyn MemoryStore>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        Ok(Bench { name, store, author: Author::new(), runtime })
    }

    fn grow(mut self, directory: &Path, sizes: &[usize]) -> Result<()> {
        for size in sizes {
            self.measure(directory, *size)?;
        }
        Ok(())
    }

    /// Grows the memory to about `size` chunks, measures, and prints a row.
    fn measure(&mut self, directory: &Path, size: usize) -> Result<()> {
        let before = self.store.size()?.chunks as usize;
        let (mut chunks, mut indexing) = (before, Duration::ZERO);
        while chunks < size {
            let lot = self.author.write_files(directory, (size - chunks).min(LOT))?;
            let began = Instant::now();
            let options = IndexOptions::default();
            let report = index(&*self.store, &lot, &options, &|_| {}, &CancellationToken::new())?;
            indexing += began.elapsed();
            chunks += report.chunks as usize;
            std::fs::remove_dir_all(&lot)?;
        }
        let adding = self.add_vectors()?;
        let began = Instant::now();
        self.store.sync()?;
        let building = began.elapsed();

        let oracle = Oracle::new(chunks);
        let (questions, keywords) = (self.author.questions(QUESTIONS), self.author.keywords(QUESTIONS));
        let rate = |took: Duration| (chunks - before) as f64 / took.as_secs_f64();
        println!(
            "| {} | {chunks} | {:.0} | {:.0} | {:.1} s | {:.0} MB | {} | {} | {} | {} | {:.3} |",
            self.name,
            rate(indexing),
            rate(adding),
            building.as_secs_f64(),
            self.store.size()?.database_bytes as f64 / 1e6,
            self.time(MemoryBackend::Sqlite, &questions, &oracle)?,
            self.time(MemoryBackend::Sqlite, &keywords, &oracle)?,
            self.time(MemoryBackend::Vector, &questions, &oracle)?,
            self.time(MemoryBackend::Hybrid, &questions, &oracle)?,
            self.recall(&oracle)?,
        );
        Ok(())
    }

    fn add_vectors(&self) -> Result<Duration> {
        let (mut last, mut spent) = (0, Duration::ZERO);
        loop {
            let missing = self.store.without_vector(MODEL, last, BATCH)?;
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

    /// The median and the 99th percentile.
    fn time(&self, backend: MemoryBackend, questions: &[String], oracle: &Oracle) -> Result<String> {
        let mut times = Vec::with_capacity(questions.len());
        for is_warm in [false, true] {
            for question in questions {
                let began = Instant::now();
                let wanted =
                    SearchRequest { question, count: TOP_K, backend, purpose: SearchPurpose::UserRequest };
                self.runtime.block_on(search(&self.store, oracle, wanted))?;
                if is_warm {
                    times.push(began.elapsed());
                }
            }
        }
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len().saturating_sub(1) as f64 * share) as usize;
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Ok(format!("{:.1} / {:.1} ms", at(0.5), at(0.99)))
    }

    /// The share of the nearest vectors that are found.
    fn recall(&self, oracle: &Oracle) -> Result<f64> {
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
