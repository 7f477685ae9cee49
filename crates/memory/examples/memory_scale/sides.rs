//! The two parts of indexing: reading files into chunks, on all cores, and writing chunks into the database, on one thread. In
//! processor time, which does not depend on other work of the machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use hob_memory::PositionUnit;
use hob_memory::store::MemoryStore;
use hob_memory::store::{NewChunk, NewSource, SourceStamp};
use hob_memory::{IndexOptions, chunk, read_file};

use crate::common::measure::Result;
use crate::report::processor_time;

/// Chunks per write, as in indexing.
const BATCH: usize = 4_096;

/// Processor seconds of each part for the same chunks.
pub struct Sides {
    pub chunks: usize,
    pub reading: f64,
    pub writing: f64,
}

pub fn measure(store: &dyn MemoryStore, directory: &Path, options: &IndexOptions) -> Result<Sides> {
    let entries = std::fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    let paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let before = processor_time();
    let sources = read_all(&paths, options)?;
    let read = processor_time();

    let chunks = sources.iter().map(|source| source.chunks.len()).sum();
    let mut batch = Vec::new();
    for source in sources {
        batch.push(source);
        if batch.iter().map(|source: &NewSource| source.chunks.len()).sum::<usize>() >= BATCH {
            store.replace(&batch, SystemTime::now())?;
            batch.clear();
        }
    }
    store.replace(&batch, SystemTime::now())?;
    Ok(Sides { chunks, reading: read - before, writing: processor_time() - read })
}

/// Reads and cuts all files, a thread for each core.
fn read_all(paths: &[PathBuf], options: &IndexOptions) -> Result<Vec<NewSource>> {
    let next = AtomicUsize::new(0);
    let read_some = || -> std::result::Result<Vec<NewSource>, String> {
        let mut sources = Vec::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            sources.push(source(path, options)?);
        }
        Ok(sources)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let read = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(read_some)).collect();
        running.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut sources = Vec::with_capacity(paths.len());
    for part in read {
        sources.extend(part.map_err(|_| "a reader panicked")??);
    }
    Ok(sources)
}

fn source(path: &Path, options: &IndexOptions) -> std::result::Result<NewSource, String> {
    let document = read_file(path, &options.limits).map_err(|error| error.to_string())?;
    let chunks = chunk(&document, options.chunks).into_iter().map(|chunk| NewChunk {
        title: chunk.title,
        text: chunk.text,
        line: chunk.line,
        end_line: chunk.end_line,
        tokens: chunk.tokens,
    });
    Ok(NewSource {
        collection: options.collection.clone(),
        path: path.display().to_string(),
        title: "measured".to_owned(),
        place: PositionUnit::Line,
        stamp: SourceStamp { hash: [0; 32], modified: 0, size: 0, recipe: String::new() },
        chunks: chunks.collect(),
    })
}
