//! `hob memory index`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use hob_config::Config;
use hob_memory::index::count;
use hob_memory::{IndexReport, IndexRequest, ProgressListener};
use tokio_util::sync::CancellationToken;

use super::progress_bar::{IndexBar, NamedFiles};
use crate::args::MemoryIndexArgs;
use crate::change_notice::{ChangedPart, tell_servers};
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
    let listener: ProgressListener = Arc::new(move |progress| shown.show(progress));
    // Dropping the work stops it, and the count with it.
    let stop = CancellationToken::new();
    let _dropped = stop.clone().drop_guard();
    count_beside(args.path.clone(), Arc::clone(&listener), stop.clone());
    let collection = args.collection.clone();
    let indexing = IndexRequest { backend: args.backend, collection: args.collection, listener, stop };
    if args.watch {
        let mut is_first = true;
        let mut began = Instant::now();
        let tell = |report: &IndexReport| {
            bar.clear();
            let skipped = bar.take_skipped();
            // After the first round, only rounds with changes print a line.
            if changes(report) > 0 {
                tell_servers(ChangedPart::Documents(collection.as_str()));
            }
            if is_first || changes(report) > 0 {
                output::note(summary(report, began, &skipped));
            }
            if is_first {
                output::note("Watching for changes; press Ctrl-C to stop.");
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
    tell_servers(ChangedPart::Documents(collection.as_str()));
    output::line(summary(&outcome?, began, &bar.take_skipped()))?;
    Ok(())
}

/// Counts the files while they are being read, until that is done or stopped.
fn count_beside(path: PathBuf, listener: ProgressListener, stop: CancellationToken) {
    tokio::task::spawn_blocking(move || count(&path, &*listener, &stop));
}

/// What a round changed.
fn changes(report: &IndexReport) -> u64 {
    report.indexed + report.added + report.removed + report.vectors
}

/// The outcome in one line, with some skipped files and why.
fn summary(report: &IndexReport, began: Instant, some_skipped: &str) -> String {
    let IndexReport { indexed, unchanged, added, removed, chunks, bytes, vectors, failed, .. } = report;
    // Some files are skipped in part.
    let skipped = report.skipped + report.partial;
    let mut text = if changes(report) == 0 {
        format!("Up to date: {}.", counted(*unchanged, "file"))
    } else {
        let mut text = format!("Indexed {}", counted(*indexed, "file"));
        if *indexed > 0 {
            let seconds = began.elapsed().as_secs_f64();
            text += &format!(": {}, {} in {seconds:.1} s", counted(*chunks, "passage"), memory(*bytes));
        }
        for (count, what) in [
            (vectors, if *vectors == 1 { "new vector" } else { "new vectors" }),
            (added, "added to the collection"),
            (unchanged, "unchanged"),
            (removed, "removed"),
        ] {
            if *count > 0 {
                text += &format!("; {count} {what}");
            }
        }
        text + "."
    };
    if skipped > 0 {
        text += &format!(" Skipped {skipped}: {some_skipped}.");
    }
    if *failed > 0 {
        text += &format!(" Not readable: {failed}.");
    }
    text
}
