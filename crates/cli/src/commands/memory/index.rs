//! `hob memory index`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use hob_config::Config;
use hob_core::IndexReport;
use hob_system::documents::index::count;
use hob_system::documents::{Indexing, Listener};
use tokio_util::sync::CancellationToken;

use super::progress::{IndexBar, NamedFiles};
use crate::args::MemoryIndexArgs;
use crate::output;
use crate::output::number::{counted, memory};

pub async fn run(mut config: Config, args: MemoryIndexArgs, named: NamedFiles) -> Result<()> {
    if let Some(size) = args.chunk_size {
        config.memory.chunk_size = size;
    }
    if let Some(overlap) = args.chunk_overlap {
        config.memory.chunk_overlap = overlap;
    }
    let documents = super::documents(&config, args.offline.into())?;
    let bar = Arc::new(IndexBar::new(named));
    let shown = Arc::clone(&bar);
    let listener: Listener = Arc::new(move |progress| shown.show(progress));
    let backend = args.backend.unwrap_or_else(|| documents.backend());
    // Dropping the work is what stops it, and the count with it.
    let stop = CancellationToken::new();
    let _dropped = stop.clone().drop_guard();
    count_beside(args.path.clone(), Arc::clone(&listener), stop.clone());
    let indexing = Indexing { backend, listener, stop };
    if args.watch {
        let mut is_first = true;
        let mut began = Instant::now();
        let tell = |report: &IndexReport| {
            bar.clear();
            // A round that found nothing new is not worth a line, but for the first.
            if is_first || report.indexed + report.removed + report.vectors > 0 {
                output::note(summary(report, began));
            }
            if is_first {
                output::note("Watching for changes; Ctrl-C ends it.");
            }
            is_first = false;
            began = Instant::now();
        };
        documents.keep_up(&args.path, indexing, tell).await?;
        return Ok(());
    }
    let began = Instant::now();
    let outcome = documents.index_with(&args.path, indexing).await;
    bar.clear();
    output::line(summary(&outcome?, began))?;
    Ok(())
}

/// Counts the files while they are being read, until that is done or stopped.
fn count_beside(path: PathBuf, listener: Listener, stop: CancellationToken) {
    tokio::task::spawn_blocking(move || count(&path, &*listener, &stop));
}

fn summary(report: &IndexReport, began: Instant) -> String {
    let IndexReport { indexed, unchanged, skipped, removed, chunks, bytes, vectors, failed, .. } = report;
    let seconds = began.elapsed().as_secs_f64();
    let mut text = format!("Indexed {}", counted(*indexed, "file"));
    if *indexed > 0 {
        text += &format!(": {}, {} in {seconds:.1} s", counted(*chunks, "passage"), memory(*bytes));
    }
    for (count, what) in [
        (vectors, if *vectors == 1 { "new vector" } else { "new vectors" }),
        (unchanged, "unchanged"),
        (removed, "gone"),
        (skipped, "skipped"),
        (failed, "not readable"),
    ] {
        if *count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text + "."
}
