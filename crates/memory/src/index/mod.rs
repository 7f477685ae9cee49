//! Indexes files: walks directories, reads files concurrently, and writes them in one thread, in batches.
//!
//! An interrupted run loses only its last batch; the next one continues from there. Knows nothing of vectors.

mod batch;
mod byte_budget;
mod changed_file;
mod count;
mod options;
mod walk;
pub mod watch;

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use hob_core::CollectionSet;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::open::store_failed;
use crate::store::{MemoryStore, SourceStamp};
use crate::types::{IndexReport, IndexWarning, MemoryError};
use batch::Batch;
use byte_budget::{ByteBudget, TakenBytes};
use changed_file::{Seen, look};
pub(crate) use changed_file::{nanoseconds, recipe, stored};
pub use count::count;
pub use options::{IndexOptions, IndexProgress, IndexProgressFn};
use walk::{Step, walk};

/// Paths that wait to be read, and files that wait to be written.
const WAITING_PATHS: usize = 256;
const WAITING_FILES: usize = 64;

/// Bytes of files in memory. Text, chunks and batches take a few times as much.
const MAX_BYTES: u64 = 64 << 20;

/// The smallest file counts as this many bytes.
const MIN_FILE_BYTES: u64 = 16 << 10;

/// Reader threads. The writer cannot keep up with more.
const MAX_READERS: usize = 4;

/// The pause before a file is read again whose readers are busy.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// The pause doubles up to this.
const LONGEST_BUSY_PAUSE: Duration = Duration::from_secs(30);

/// Failed files that are named.
const MAX_WARNINGS: usize = 1_000;

/// Skipped and failed files of one run that are saved.
const MAX_SKIPPED: usize = 10_000;

/// Files per deletion.
const REMOVED_AT_ONCE: usize = 128;

/// Indexes changed files below `root` into the collection of the options, removes deleted files of this collection, and saves which files
/// were skipped or could not be read. Uploads, and folders of the library that the walk does not reach, stay as they are. A file has
/// one text: what is read or deleted here changes in all its collections. Blocks.
pub fn index(
    store: &dyn MemoryStore,
    root: &Path,
    options: &IndexOptions,
    progress: IndexProgressFn<'_>,
    stop: &CancellationToken,
) -> Result<IndexReport, MemoryError> {
    let look = |path: &Path, metadata: &Metadata, known: &HashMap<String, SourceStamp>| {
        look(path, metadata, known, options)
    };
    index_by(&look, store, options, root, progress, stop)
}

type Look<'a> = &'a (dyn Fn(&Path, &Metadata, &HashMap<String, SourceStamp>) -> Seen + Sync);

fn index_by(
    look: Look<'_>,
    store: &dyn MemoryStore,
    options: &IndexOptions,
    root: &Path,
    progress: IndexProgressFn<'_>,
    stop: &CancellationToken,
) -> Result<IndexReport, MemoryError> {
    let root = resolve(root)?;
    let name = root.to_str().ok_or_else(|| cannot(&root, "its name is not UTF-8"))?;
    let known = store.known_below(name).map_err(store_failed)?;
    let own = store.paths_below(name, &CollectionSet::of(options.collection.clone()), usize::MAX);
    let own: HashSet<String> = own.map_err(store_failed)?.into_iter().collect();
    let mut run = Run {
        progress,
        report: IndexReport::default(),
        own: &own,
        unseen: own.iter().map(String::as_str).collect(),
        unmet: folders_inside(store, &root)?,
        unknown: Vec::new(),
        skipped: Vec::new(),
        batch: Batch::new(store, &options.collection),
    };
    let budget = ByteBudget::new(MAX_BYTES);
    // Stops the readers when the writer fails.
    let stop = stop.child_token();
    let (paths, waiting_paths) = sync_channel(WAITING_PATHS);
    let (files, waiting_files) = sync_channel(WAITING_FILES);
    let waiting_paths = Mutex::new(waiting_paths);
    let written = thread::scope(|scope| {
        let (budget, known, stop, waiting_paths) = (&budget, &known, &stop, &waiting_paths);
        let walked = files.clone();
        let start = root.clone();
        scope.spawn(move || send_paths(&start, paths, walked, stop));
        for _ in 0..readers() {
            let files = files.clone();
            scope.spawn(move || read_files(waiting_paths, files, known, look, budget, stop));
        }
        drop(files);
        let written = run.take_in(waiting_files);
        if written.is_err() {
            stop.cancel();
        }
        written
    });
    written?;
    if stop.is_cancelled() {
        return Err(MemoryError::Stopped);
    }
    run.finish(store, &root, options)
}

/// The folders of the library below `root`. One that was deleted is indexed by itself only if it is watched.
fn folders_inside(store: &dyn MemoryStore, root: &Path) -> Result<HashSet<PathBuf>, MemoryError> {
    let folders = store.folders().map_err(store_failed)?.into_iter();
    let folders = folders.map(|folder| (folder.watched, PathBuf::from(folder.path)));
    let inside = folders.filter(|(_, path)| path != root && path.starts_with(root));
    Ok(inside.filter(|(watched, path)| *watched || path.is_dir()).map(|(_, path)| path).collect())
}

/// The stored path: absolute, without links.
pub fn resolve(path: &Path) -> Result<PathBuf, MemoryError> {
    path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => cannot(path, "there is no such file or directory"),
        _ => cannot(path, error),
    })
}

fn cannot(path: &Path, reason: impl ToString) -> MemoryError {
    MemoryError::Path { path: path.to_owned(), reason: reason.to_string() }
}

fn readers() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_READERS)
}

/// A checked file, and its memory until it is written.
struct Looked<'a> {
    path: PathBuf,
    size: u64,
    seen: Seen,
    _taken: TakenBytes<'a>,
}

enum News<'a> {
    Looked(Looked<'a>),
    /// The content is unknown.
    Problem {
        path: PathBuf,
        reason: String,
    },
}

/// Ends with the walk, when the receivers are dropped, or when it is stopped.
fn send_paths(root: &Path, paths: SyncSender<PathBuf>, news: SyncSender<News<'_>>, stop: &CancellationToken) {
    for step in walk(root) {
        let sent = match step {
            _ if stop.is_cancelled() => return,
            Step::File(path) => paths.send(path).is_ok(),
            Step::Problem { path, reason } => news.send(News::Problem { path, reason }).is_ok(),
        };
        if !sent {
            return;
        }
    }
}

fn read_files<'a>(
    paths: &Mutex<Receiver<PathBuf>>,
    files: SyncSender<News<'a>>,
    known: &HashMap<String, SourceStamp>,
    look: Look<'_>,
    budget: &'a ByteBudget,
    stop: &CancellationToken,
) {
    let next = || paths.lock().recv();
    while let Ok(path) = next() {
        if stop.is_cancelled() {
            // The walk may block on its next path, so the rest is drained.
            continue;
        }
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // The file was just deleted.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                if files.send(News::Problem { path, reason: error.to_string() }).is_err() {
                    return;
                }
                continue;
            }
        };
        let taken = budget.take(metadata.len().max(MIN_FILE_BYTES));
        // A panic on one file must not stop the others.
        let try_to_look = || {
            catch_unwind(AssertUnwindSafe(|| look(&path, &metadata, known)))
                .unwrap_or_else(|_| Seen::Failed("its reader crashed; please report this".to_owned()))
        };
        let mut seen = try_to_look();
        // Indexing has no caller that waits for it, so it yields to callers that do. It does not skip the file, because no later run
        // indexes an upload.
        let mut pause = BUSY_PAUSE;
        while matches!(seen, Seen::Busy(_)) && !stop.is_cancelled() {
            thread::sleep(pause);
            // A long document begins again each time.
            pause = LONGEST_BUSY_PAUSE.min(pause * 2);
            seen = try_to_look();
        }
        let looked = Looked { path, size: metadata.len(), seen, _taken: taken };
        if files.send(News::Looked(looked)).is_err() {
            return;
        }
    }
}

/// The writer of one run.
struct Run<'a> {
    progress: IndexProgressFn<'a>,
    report: IndexReport,
    /// Known sources of the collection.
    own: &'a HashSet<String>,
    /// Those that were not found yet.
    unseen: HashSet<&'a str>,
    /// Folders of the library below the root in which the walk met no file yet. At its end, these are hidden, ignored, or their drive is
    /// missing.
    unmet: HashSet<PathBuf>,
    /// Directories whose files this run does not know.
    unknown: Vec<PathBuf>,
    /// Files to save with the reason.
    skipped: Vec<IndexWarning>,
    batch: Batch<'a>,
}

impl<'a> Run<'a> {
    fn take_in(&mut self, files: Receiver<News<'_>>) -> Result<(), MemoryError> {
        let mut outcome = Ok(());
        // Drained even after a failure, because a reader may wait for free bytes.
        for news in files {
            match news {
                News::Problem { path, reason } => {
                    self.warn(path.clone(), reason);
                    self.unknown.push(path);
                }
                News::Looked(looked) if outcome.is_ok() => outcome = self.take(looked),
                News::Looked(_) => {}
            }
        }
        outcome.and_then(|()| self.batch.write())
    }

    fn take(&mut self, Looked { path, size, seen, _taken }: Looked<'_>) -> Result<(), MemoryError> {
        self.report.files += 1;
        if !self.unmet.is_empty() {
            for above in path.ancestors() {
                self.unmet.remove(above);
            }
        }
        let seen = match seen {
            Seen::Partly { reason, rest } => {
                self.report.partial += 1;
                let file = IndexWarning { path: path.clone(), reason };
                (self.progress)(IndexProgress::Skipped(&file));
                self.note(file);
                *rest
            }
            seen => seen,
        };
        let met = !matches!(seen, Seen::Skipped(_) | Seen::Refused(_));
        if let Some(name) = path.to_str().filter(|_| met) {
            self.unseen.remove(name);
        }
        match seen {
            Seen::Same => self.take_known(&path)?,
            Seen::Skipped(reason) => self.skip(path, reason),
            Seen::WithoutText { reason, source } => {
                self.skip(path, reason);
                if let Some(source) = source {
                    self.batch.add(source)?;
                }
            }
            Seen::Failed(reason) | Seen::Busy(reason) | Seen::Refused(reason) => self.warn(path, reason),
            // Only the outer one of two is noted.
            Seen::Partly { reason, .. } => self.skip(path, reason),
            Seen::Touched(stamp) => {
                self.take_known(&path)?;
                if let Some(name) = path.to_str() {
                    self.batch.touch(name.to_owned(), stamp)?;
                }
            }
            Seen::New(source) => {
                self.report.indexed += 1;
                self.report.chunks += source.chunks.len() as u64;
                self.report.bytes += size;
                self.batch.add(source)?;
            }
        }
        (self.progress)(IndexProgress::Files(&self.report));
        Ok(())
    }

    /// An unchanged file, which may be new in the collection.
    fn take_known(&mut self, path: &Path) -> Result<(), MemoryError> {
        match path.to_str() {
            Some(name) if !self.own.contains(name) => {
                self.report.added += 1;
                self.batch.add_known(name.to_owned())
            }
            _ => {
                self.report.unchanged += 1;
                Ok(())
            }
        }
    }

    fn skip(&mut self, path: PathBuf, reason: String) {
        self.report.skipped += 1;
        let file = IndexWarning { path, reason };
        (self.progress)(IndexProgress::Skipped(&file));
        self.note(file);
    }

    fn warn(&mut self, path: PathBuf, reason: String) {
        let warning = IndexWarning { path, reason };
        (self.progress)(IndexProgress::Warning(&warning));
        self.report.failed += 1;
        if self.report.warnings.len() < MAX_WARNINGS {
            self.report.warnings.push(warning.clone());
        }
        self.note(warning);
    }

    fn note(&mut self, file: IndexWarning) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(file);
        }
    }

    /// Removes what is gone, and replaces the list of skipped files. Both stay as they are where this run did not look: runs over
    /// those places change them.
    fn finish(
        mut self,
        store: &dyn MemoryStore,
        root: &Path,
        options: &IndexOptions,
    ) -> Result<IndexReport, MemoryError> {
        self.unknown.extend(options.uploads_outside(root).map(Path::to_owned));
        self.unknown.extend(self.unmet.drain());
        self.forget_what_is_gone(store, root)?;
        let name = |path: &Path| path.to_string_lossy().into_owned();
        let spared: Vec<String> = self.unknown.iter().map(|place| name(place)).collect();
        let replaced = store.replace_skipped(
            &options.collection,
            &name(root),
            &spared,
            &self.skipped,
            SystemTime::now(),
        );
        replaced.map_err(store_failed)?;
        Ok(self.report)
    }

    fn forget_what_is_gone(&mut self, store: &dyn MemoryStore, root: &Path) -> Result<(), MemoryError> {
        let is_unknown = |path: &str| self.unknown.iter().any(|place| Path::new(path).starts_with(place));
        let gone: Vec<String> =
            self.unseen.iter().filter(|path| !is_unknown(path)).map(|path| (*path).to_owned()).collect();
        // The directory where a drive is mounted looks like this without the drive.
        if self.report.files == 0 && !gone.is_empty() && root.is_dir() {
            return Err(MemoryError::NoFiles { path: root.to_owned() });
        }
        for paths in gone.chunks(REMOVED_AT_ONCE) {
            self.report.removed += store.remove(paths).map_err(store_failed)?.sources;
        }
        (self.progress)(IndexProgress::Files(&self.report));
        Ok(())
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
