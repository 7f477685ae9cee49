//! Measures the memory as it grows: indexing rate, process memory, and search by words, by meaning and by both, at 10,000,
//! 100,000 and 1,000,000 chunks. `./dev bench memory` runs it; or `memory_scale [--out FILE] [SIZE...]`.
//!
//! The text is generated, with the word frequencies of natural language, and indexed from files. Vectors are generated too,
//! because a model would take days for a million; they are clustered like real ones, and embedding the question is not part of
//! the time.

#[path = "../common/mod.rs"]
mod common;
mod report;
mod sides;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_memory::IndexOptions;
use hob_memory::MemoryBackend;
use hob_memory::index::index;
use hob_memory::store::{MemoryStore, SqliteMemoryStore};
use tokio_util::sync::CancellationToken;

use common::measure::{MeasuredMemory, QUESTIONS, Result, TOP_K};
use common::text::Author;
use common::vectors::{MODEL, Oracle};
use report::{Latency, Row, peak_memory};

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

struct Bench {
    memory: MeasuredMemory,
    database: PathBuf,
    texts: PathBuf,
    author: Author,
    options: IndexOptions,
}

fn main() -> Result<()> {
    let (out, sizes) = arguments()?;
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("memory.db");
    let texts = directory.path().join("texts");
    std::fs::create_dir(&texts)?;
    let mut bench = Bench {
        memory: MeasuredMemory::new(Arc::new(SqliteMemoryStore::open(&database)?))?,
        database,
        texts,
        author: Author::new(),
        options: IndexOptions::default(),
    };
    let mut rows = Vec::new();
    report::print_head();
    for size in sizes {
        let row = bench.measure(size)?;
        report::print(&row);
        rows.push(row);
    }
    if let Some(out) = out {
        std::fs::write(&out, serde_json::to_string_pretty(&rows)?)?;
        println!("\nwritten to {}", out.display());
    }
    Ok(())
}

fn arguments() -> Result<(Option<PathBuf>, Vec<usize>)> {
    let mut arguments = std::env::args().skip(1).peekable();
    let out = match arguments.next_if(|argument| argument == "--out") {
        Some(_) => Some(arguments.next().ok_or("--out needs a file")?.into()),
        None => None,
    };
    let sizes = arguments.map(|size| size.parse()).collect::<std::result::Result<Vec<usize>, _>>()?;
    Ok((out, if sizes.is_empty() { SIZES.to_vec() } else { sizes }))
}

impl Bench {
    /// Grows the memory to `size` chunks, and measures.
    fn measure(&mut self, size: usize) -> Result<Row> {
        let memory = &self.memory;
        let before = memory.store.size()?;
        let written = Instant::now();
        let (mut chunks, mut bytes, mut spent) = (before.chunks as usize, 0, Duration::ZERO);
        // Files come in portions, so that there is never much text on disk.
        let lot_size = (size / 5).min(20_000);
        while chunks + lot_size < size {
            let lot = self.author.write_files(&self.texts, lot_size)?;
            let began = Instant::now();
            let report = index(&*memory.store, &lot, &self.options, &|_| {}, &CancellationToken::new())?;
            spent += began.elapsed();
            bytes += report.bytes;
            chunks += report.chunks as usize;
            std::fs::remove_dir_all(&lot)?;
        }
        let indexed = chunks as u64 - before.chunks;
        let indexing_memory = peak_memory();
        // The last portion measures each step.
        let lot = self.author.write_files(&self.texts, size.saturating_sub(chunks))?;
        let sides = sides::measure(&*memory.store, &lot, &self.options)?;
        std::fs::remove_dir_all(&lot)?;
        chunks += sides.chunks;
        eprintln!("{chunks} chunks after {:.0?}", written.elapsed());
        let vectors_took = memory.add_vectors()?;

        let questions = self.author.questions(QUESTIONS);
        let keywords = self.author.keywords(QUESTIONS);
        let oracle = Oracle::new(chunks);
        Ok(Row {
            chunks,
            chunks_per_second: indexed as f64 / spent.as_secs_f64(),
            megabytes_per_second: bytes as f64 / 1e6 / spent.as_secs_f64(),
            indexing_memory_mb: indexing_memory / 1e6,
            reading_us: sides.reading * 1e6 / sides.chunks as f64,
            writing_us: sides.writing * 1e6 / sides.chunks as f64,
            vectors_per_second: (chunks as u64 - before.chunks) as f64 / vectors_took.as_secs_f64(),
            database_mb: size_of(&self.database) / 1e6,
            load_vectors_ms: self.first_search(&oracle)?.as_secs_f64() * 1e3,
            words_question: Latency::of(&memory.time(MemoryBackend::Sqlite, &questions, &oracle)?),
            words_keywords: Latency::of(&memory.time(MemoryBackend::Sqlite, &keywords, &oracle)?),
            vector: Latency::of(&memory.time(MemoryBackend::Vector, &questions, &oracle)?),
            hybrid: Latency::of(&memory.time(MemoryBackend::Hybrid, &questions, &oracle)?),
            vector_recall: memory.recall(&oracle)?,
            searching_memory_mb: peak_memory() / 1e6,
        })
    }

    /// A new process must read the signs of the vectors first.
    fn first_search(&self, oracle: &Oracle) -> Result<Duration> {
        let fresh = SqliteMemoryStore::open(&self.database)?;
        let began = Instant::now();
        fresh.find_vectors(MODEL, &oracle.question(0), TOP_K)?;
        Ok(began.elapsed())
    }
}

fn size_of(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64)
}
