//! How well the memory finds what answers a question: recall of the first five and the mean reciprocal rank, for the three
//! backends, over the judged set in `benches/memory`. `./dev bench memory` runs it; by hand: `memory_quality SET HOME [--out FILE]`.
//!
//! The documents take the whole way through files, chunks and the real embedding model, which is kept in HOME.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hob_config::Config;
use hob_core::{Memory, MemoryBackend, MemoryQuery, Passage};
use hob_system::FirstRun;
use hob_system::documents::{Documents, Indexing};
use hob_system::memory::{HouseMemory, MemoryWiring};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Passages that are looked at.
const TOP: usize = 5;

/// Passages among which the first right one is looked for.
const DEPTH: usize = 50;

#[derive(Deserialize)]
struct Document {
    id: String,
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    documents: Vec<String>,
    wording: String,
}

/// How well a backend did on some of the questions.
#[derive(Debug, Serialize)]
struct Quality {
    backend: MemoryBackend,
    wording: String,
    questions: usize,
    recall_at_5: f64,
    mrr: f64,
    milliseconds_each: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (set, home, out) = match arguments.as_slice() {
        [set, home] => (set, home, None),
        [set, home, flag, out] if flag == "--out" => (set, home, Some(out)),
        _ => return Err("usage: memory_quality SET HOME [--out FILE]".into()),
    };
    let set = Path::new(set);
    let documents: Vec<Document> = read(&set.join("documents.jsonl"))?;
    let questions: Vec<Question> = read(&set.join("questions.jsonl"))?;
    let directory = tempfile::tempdir()?;
    for document in &documents {
        let text = format!("# {}\n\n{}\n", document.title, document.text);
        std::fs::write(directory.path().join(format!("{}.md", document.id)), text)?;
    }
    std::fs::create_dir_all(home)?;
    let memory = memory(Path::new(home))?;
    let began = Instant::now();
    let indexing = Indexing {
        backend: MemoryBackend::Hybrid,
        listener: Arc::new(|_| {}),
        stop: CancellationToken::new(),
    };
    let report = memory.index_with(directory.path(), indexing).await?;
    println!(
        "{} documents, {} chunks, {} vectors in {:.1?}",
        report.indexed,
        report.chunks,
        report.vectors,
        began.elapsed()
    );
    println!(
        "{:>8} {:>8} {:>9} {:>9} {:>7} {:>8}",
        "backend", "wording", "questions", "recall@5", "MRR", "ms each"
    );
    let mut figures = Vec::new();
    for backend in MemoryBackend::ALL {
        for wording in ["same", "other", "all"] {
            let asked = questions.iter().filter(|question| wording == "all" || question.wording == wording);
            let quality = judge(&memory, backend, wording, asked.collect()).await?;
            println!(
                "{:>8} {:>8} {:>9} {:>9.3} {:>7.3} {:>8.1}",
                backend.as_str(),
                quality.wording,
                quality.questions,
                quality.recall_at_5,
                quality.mrr,
                quality.milliseconds_each
            );
            figures.push(quality);
        }
    }
    memory.forget(directory.path().canonicalize()?.to_str().ok_or("not UTF-8")?).await?;
    if let Some(out) = out {
        std::fs::write(out, serde_json::to_string_pretty(&figures)?)?;
        println!("\nwritten to {out}");
    }
    Ok(())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?)
}

fn memory(home: &Path) -> Result<Arc<Documents>> {
    let first_use = FirstRun::Fetch(Arc::new(|_| {}));
    let wiring = MemoryWiring { first_use, ..MemoryWiring::default() };
    Ok(Arc::clone(HouseMemory::new(&Config::default(), home, wiring)?.documents()))
}

async fn judge(
    memory: &Documents,
    backend: MemoryBackend,
    wording: &str,
    questions: Vec<&Question>,
) -> Result<Quality> {
    let (mut recall, mut reciprocal) = (0.0, 0.0);
    let began = Instant::now();
    for question in &questions {
        let query = MemoryQuery { text: question.question.clone(), top_k: DEPTH, backend: Some(backend) };
        let found = memory.search(&query).await?.passages;
        let names: Vec<String> = found.iter().map(name).collect();
        let right = |name: &String| question.documents.contains(name);
        let among_first =
            question.documents.iter().filter(|wanted| names.iter().take(TOP).any(|name| name == *wanted));
        recall += among_first.count() as f64 / question.documents.len() as f64;
        reciprocal += names.iter().position(right).map_or(0.0, |index| 1.0 / (index + 1) as f64);
    }
    let count = questions.len() as f64;
    Ok(Quality {
        backend,
        wording: wording.to_owned(),
        questions: questions.len(),
        recall_at_5: recall / count,
        mrr: reciprocal / count,
        milliseconds_each: began.elapsed().as_secs_f64() * 1e3 / count,
    })
}

/// The document a passage is of.
fn name(passage: &Passage) -> String {
    Path::new(&passage.source).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
