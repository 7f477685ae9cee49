//! Notices that something below a directory changed, and waits until it is quiet again: an editor that saves a file makes
//! several changes of it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio_util::sync::CancellationToken;

use crate::types::MemoryError;

/// So long nothing more must happen.
const QUIET: Duration = Duration::from_millis(300);

/// After so long it is enough, quiet or not.
const PATIENCE: Duration = Duration::from_secs(5);

/// How soon a stop is noticed.
const BLINK: Duration = Duration::from_millis(100);

/// Watches a directory, or a file, from its making on.
pub struct DirectoryWatch {
    changes: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl DirectoryWatch {
    /// `ours` is the memory's own database: what happens to it is no news.
    pub fn start(root: &Path, ours: &Path) -> Result<Self, MemoryError> {
        let root = super::resolve(root)?;
        // What matters is that something happened, so one change may stand for many.
        let (sender, changes) = sync_channel(1);
        let (below, ours) = (root.clone(), ours.to_owned());
        let heard = move |event: notify::Result<Event>| {
            let is_news = match event {
                Ok(event) => is_news(&event, &below, &ours),
                // Some changes were lost: one look at everything finds them.
                Err(_) => true,
            };
            if is_news && let Err(TrySendError::Disconnected(())) = sender.try_send(()) {
                tracing::debug!("nobody watches any more");
            }
        };
        let failed = |error: notify::Error| MemoryError::Path { path: root.clone(), reason: explain(&error) };
        let mut watcher = notify::recommended_watcher(heard).map_err(failed)?;
        watcher.watch(&root, RecursiveMode::Recursive).map_err(failed)?;
        Ok(DirectoryWatch { changes, _watcher: watcher })
    }

    /// Waits for a change, and then for quiet. `false` when it was told to stop.
    pub fn changed(&self, stop: &CancellationToken) -> bool {
        loop {
            match self.changes.recv_timeout(BLINK) {
                _ if stop.is_cancelled() => return false,
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE && !stop.is_cancelled() {
            if self.changes.recv_timeout(QUIET).is_err() {
                break;
            }
        }
        !stop.is_cancelled()
    }
}

fn explain(error: &notify::Error) -> String {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "there are too many directories to watch; raise fs.inotify.max_user_watches, or watch less"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Whether files that are indexed may have changed.
fn is_news(event: &Event, root: &Path, ours: &Path) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    event.need_rescan() || event.paths.iter().any(|path| !is_hidden(path, root) && !is_ours(path, ours))
}

fn is_hidden(path: &Path, root: &Path) -> bool {
    let below: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    // What is ignored is written in a hidden file.
    let is_rule = below.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
    !is_rule && below.iter().any(|name| name.to_string_lossy().starts_with('.'))
}

/// The database, and the files that SQLite keeps beside it.
fn is_ours(path: &Path, ours: &Path) -> bool {
    let name =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.parent() == ours.parent() && name(path).starts_with(&name(ours))
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind};

    use super::*;

    fn news(kind: EventKind, path: &str) -> bool {
        let event = Event::new(kind).add_path(path.into());
        is_news(&event, Path::new("/home/me"), Path::new("/home/me/hob/memory.db"))
    }

    #[test]
    fn reading_hidden_files_and_our_own_writing_are_no_news() {
        let created = EventKind::Create(CreateKind::File);
        assert!(news(created, "/home/me/notes/a.md"));
        assert!(news(created, "/home/me/.gitignore"));
        assert!(!news(EventKind::Access(AccessKind::Any), "/home/me/notes/a.md"));
        assert!(!news(created, "/home/me/.cache/x"));
        assert!(!news(created, "/home/me/hob/memory.db-wal"));
    }
}
