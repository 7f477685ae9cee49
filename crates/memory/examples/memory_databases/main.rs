//! Compares the memory in SQLite and in PostgreSQL as it grows: indexing and vectors per second, size, search by words, by meaning and
//! by both, and how many of the ten nearest vectors are found. `./dev bench database memory` runs it; or
//! `memory_databases [--url URL] [--only-postgres] [SIZE...]`.
//!
//! The text and the vectors are those of `memory_scale`. Without a URL, PostgreSQL is the server of the tests, which does not wait for
//! the disk.

#[path = "../common/mod.rs"]
mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_db::postgres::PostgresDatabase;
use hob_memory::index::index;
use hob_memory::{
    IndexOptions, MemoryBackend, MemoryStore, POSTGRES_MIGRATIONS, PostgresMemoryStore, SqliteMemoryStore,
};
use hob_testkit::PostgresServer;
use tokio_util::sync::CancellationToken;

use common::measure::{MeasuredMemory, QUESTIONS, Result, SearchTimes, TOP_K};
use common::text::Author;
use common::vectors::Oracle;

const SIZES: [usize; 2] = [10_000, 100_000];

/// Files on the disk at a time, in chunks.
const LOT: usize = 20_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let url = match arguments.next_if(|argument| argument == "--url") {
        Some(_) => Some(arguments.next().ok_or("--url needs an address")?),
        None => None,
    };
    let has_sqlite = arguments.next_if(|argument| argument == "--only-postgres").is_none();
    let sizes = arguments.map(|size| size.parse()).collect::<std::result::Result<Vec<usize>, _>>()?;
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };

    println!(
        "| database | chunks | indexed/s | vectors/s | index built | size | questions p50 / p99 | keywords p50 / p99 | \
         meaning p50 / p99 | both p50 / p99 | recall@{TOP_K} |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let in_sqlite = if has_sqlite { grow_in_sqlite(&sizes)? } else { Vec::new() };

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
    let in_postgres = Bench::new("PostgreSQL", Arc::new(store))?.grow(directory.path(), &sizes)?;
    print_ratios(&in_sqlite, &in_postgres);
    Ok(())
}

fn grow_in_sqlite(sizes: &[usize]) -> Result<Vec<Figures>> {
    let directory = tempfile::tempdir()?;
    let store = SqliteMemoryStore::open(&directory.path().join("memory.db"))?;
    Bench::new("SQLite", Arc::new(store))?.grow(directory.path(), sizes)
}

/// What is compared as a ratio.
struct Figures {
    chunks: usize,
    indexed: f64,
    vectors: f64,
    bytes: f64,
    /// Medians.
    keywords: f64,
    meaning: f64,
    both: f64,
    recall: f64,
}

impl Figures {
    /// A row with these figures as multiples of others.
    fn print_against(&self, other: &Figures, name: &str) {
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.3} |",
            self.indexed / other.indexed,
            self.vectors / other.vectors,
            self.bytes / other.bytes,
            self.keywords / other.keywords,
            self.meaning / other.meaning,
            self.both / other.both,
            self.recall / other.recall,
        );
    }
}

/// PostgreSQL against SQLite at each size, and the largest size against the smallest in each.
fn print_ratios(in_sqlite: &[Figures], in_postgres: &[Figures]) {
    println!(
        "\n| ratio | indexed/s | vectors/s | size | keywords p50 | meaning p50 | both p50 | recall@{TOP_K} |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (sqlite, postgres) in in_sqlite.iter().zip(in_postgres) {
        postgres.print_against(sqlite, &format!("PostgreSQL to SQLite, {} chunks", postgres.chunks));
    }
    for (name, grown) in [("SQLite", in_sqlite), ("PostgreSQL", in_postgres)] {
        if let [first, .., last] = grown {
            last.print_against(first, &format!("{name}, {} to {} chunks", first.chunks, last.chunks));
        }
    }
}

struct Bench {
    name: &'static str,
    memory: MeasuredMemory,
    author: Author,
}

impl Bench {
    fn new(name: &'static str, store: Arc<dyn MemoryStore>) -> Result<Self> {
        Ok(Bench { name, memory: MeasuredMemory::new(store)?, author: Author::new() })
    }

    fn grow(mut self, directory: &Path, sizes: &[usize]) -> Result<Vec<Figures>> {
        sizes.iter().map(|size| self.measure(directory, *size)).collect()
    }

    /// Grows the memory to about `size` chunks, measures, and prints a row.
    fn measure(&mut self, directory: &Path, size: usize) -> Result<Figures> {
        let memory = &self.memory;
        let before = memory.store.size()?.chunks as usize;
        let (mut chunks, mut indexing) = (before, Duration::ZERO);
        while chunks < size {
            let lot = self.author.write_files(directory, (size - chunks).min(LOT))?;
            let began = Instant::now();
            let options = IndexOptions::default();
            let report = index(&*memory.store, &lot, &options, &|_| {}, &CancellationToken::new())?;
            indexing += began.elapsed();
            chunks += report.chunks as usize;
            std::fs::remove_dir_all(&lot)?;
        }
        let adding = memory.add_vectors()?;
        let began = Instant::now();
        memory.store.sync()?;
        let building = began.elapsed();

        let oracle = Oracle::new(chunks);
        let (questions, keywords) = (self.author.questions(QUESTIONS), self.author.keywords(QUESTIONS));
        let rate = |took: Duration| (chunks - before) as f64 / took.as_secs_f64();
        let times = [
            memory.time(MemoryBackend::Sqlite, &questions, &oracle)?,
            memory.time(MemoryBackend::Sqlite, &keywords, &oracle)?,
            memory.time(MemoryBackend::Vector, &questions, &oracle)?,
            memory.time(MemoryBackend::Hybrid, &questions, &oracle)?,
        ];
        let [_, keywords, meaning, both] = times.each_ref().map(|times| times.milliseconds(0.5));
        let figures = Figures {
            chunks,
            indexed: rate(indexing),
            vectors: rate(adding),
            bytes: memory.store.size()?.database_bytes as f64,
            keywords,
            meaning,
            both,
            recall: memory.recall(&oracle)?,
        };
        println!(
            "| {} | {chunks} | {:.0} | {:.0} | {:.1} s | {:.0} MB | {} | {:.3} |",
            self.name,
            figures.indexed,
            figures.vectors,
            building.as_secs_f64(),
            figures.bytes / 1e6,
            times.each_ref().map(shown).join(" | "),
            figures.recall,
        );
        Ok(figures)
    }
}

/// The median and the 99th percentile.
fn shown(times: &SearchTimes) -> String {
    format!("{:.1} / {:.1} ms", times.milliseconds(0.5), times.milliseconds(0.99))
}
