//! How well the memory finds what answers a question: recall of the first five and the mean reciprocal rank, for the three
//! backends and each kind of question, over the judged sets in `benches/memory`. Then the same for each kind of search, with the
//! share of unrelated questions (those of the other two sets; the sets share no file) that get no passage. `./dev bench memory quality`
//! runs it; by hand: `memory_quality SETS HOME [--out FILE] [--lists FILE]`.
//!
//! The files go through reading, chunking and the real embedding model, which is stored in HOME. `--lists` writes
//! the results of both searches for the questions of the known set, so that another fusion can be tried. The
//! other sets have no such lists, because they must not be used for tuning.

mod judge;
mod purposes;
mod report;
mod set;

use std::path::Path;
use std::sync::Arc;

use hob_app::Databases;
use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_config::Config;
use hob_core::CollectionName;
use hob_memory::{IndexRequest, MemoryBackend, MemoryService};
use hob_models::FirstRun;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use judge::{Answered, ask, listed};
use purposes::judge_purposes;
use report::{Report, print_purposes};
use set::{CONFIRMING, HELD_OUT, KNOWN, Question, Set};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Default)]
struct Arguments {
    sets: String,
    home: String,
    out: Option<String>,
    lists: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Arguments { sets, home, out, lists } = arguments()?;
    std::fs::create_dir_all(&home)?;
    let memory = memory(Path::new(&home))?;
    let names = [KNOWN, HELD_OUT, CONFIRMING];
    let sets =
        names.iter().map(|name| Set::read(&Path::new(&sets).join(name))).collect::<Result<Vec<Set>>>()?;
    let mut reports = Vec::new();
    for set in &sets {
        let others = sets.iter().filter(|other| other.name != set.name);
        let unrelated: Vec<&Question> = others.flat_map(|other| &other.questions).collect();
        let lists = lists.as_deref().filter(|_| set.name == KNOWN);
        let report = judge_set(&memory, set, &unrelated, lists).await?;
        report.print();
        reports.push(report);
    }
    print_purposes(&reports);
    if let Some(out) = out {
        write(&out, &reports)?;
    }
    Ok(())
}

fn arguments() -> Result<Arguments> {
    const USAGE: &str = "usage: memory_quality SETS HOME [--out FILE] [--lists FILE]";
    let mut given = std::env::args().skip(1);
    let mut arguments = Arguments {
        sets: given.next().ok_or(USAGE)?,
        home: given.next().ok_or(USAGE)?,
        ..Arguments::default()
    };
    while let Some(flag) = given.next() {
        let file = match flag.as_str() {
            "--out" => &mut arguments.out,
            "--lists" => &mut arguments.lists,
            _ => return Err(USAGE.into()),
        };
        *file = Some(given.next().ok_or(USAGE)?);
    }
    Ok(arguments)
}

fn memory(home: &Path) -> Result<Arc<MemoryService>> {
    let first_use = FirstRun::Fetch(Arc::new(|_| {}));
    let wiring = MemoryWiring { first_use, ..MemoryWiring::default() };
    Ok(open_memory(&Config::default(), home, Databases::in_files(home).memory, wiring)?)
}

/// Indexes the files of the set, and runs its questions and the unrelated ones on each backend.
async fn judge_set(
    memory: &MemoryService,
    set: &Set,
    unrelated: &[&Question],
    lists: Option<&str>,
) -> Result<Report> {
    // The files of another set, also those of a run that was interrupted, would answer the unrelated questions.
    memory.forget_collection(CollectionName::default()).await?;
    let indexing = IndexRequest {
        backend: Some(MemoryBackend::Hybrid),
        collection: CollectionName::default(),
        listener: Arc::new(|_| {}),
        stop: CancellationToken::new(),
    };
    let indexed = memory.index_with(&set.files, indexing).await?;
    let mut answered: Vec<Answered> = Vec::new();
    for question in &set.questions {
        answered.push(ask(memory, set, question).await?);
    }
    if let Some(file) = lists {
        let mut all = Vec::new();
        for question in &set.questions {
            all.push(listed(memory, set, question).await?);
        }
        write(file, &all)?;
    }
    let purposes = judge_purposes(memory, set, unrelated).await?;
    Ok(Report::of(set, &indexed, answered, purposes))
}

fn write(path: &str, value: &impl Serialize) -> Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(value)?)?;
    println!("\nwritten to {path}");
    Ok(())
}
