//! Watches a directory, and waits until changes have settled: an editor makes several changes to save a file.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio_util::sync::CancellationToken;

use crate::types::MemoryError;

/// The quiet time after the last change.
const QUIET: Duration = Duration::from_millis(300);

/// The longest wait for the quiet time.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The interval to check for a stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Watches a directory or a file.
pub struct DirectoryWatch {
    changes: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl DirectoryWatch {
    /// `ours` is the file of the memory's own database, if it is one. Its changes are ignored.
    pub fn start(root: &Path, ours: Option<&Path>) -> Result<Self, MemoryError> {
        let root = super::resolve(root)?;
        // Only that something changed matters, so one change is enough.
        let (sender, changes) = sync_channel(1);
        let (below, ours) = (root.clone(), ours.map(Path::to_owned));
        let heard = move |event: notify::Result<Event>| {
            let is_news = match event {
                Ok(event) => is_news(&event, &below, ours.as_deref()),
                // Changes were lost, so everything is checked.
                Err(_) => true,
            };
            if is_news && let Err(TrySendError::Disconnected(())) = sender.try_send(()) {
                tracing::debug!("the watch has ended");
            }
        };
        let failed = |error: notify::Error| MemoryError::Path { path: root.clone(), reason: explain(&error) };
        let mut watcher = notify::recommended_watcher(heard).map_err(failed)?;
        watcher.watch(&root, RecursiveMode::Recursive).map_err(failed)?;
        Ok(DirectoryWatch { changes, _watcher: watcher })
    }

    /// Waits for a change, and then for the quiet time. Returns `false` after a stop.
    pub fn changed(&self, stop: &CancellationToken) -> bool {
        loop {
            match self.changes.recv_timeout(STOP_INTERVAL) {
                _ if stop.is_cancelled() => return false,
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let began = Instant::now();
        while began.elapsed() < MAX_WAIT && !stop.is_cancelled() {
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

/// Whether indexed files may have changed.
fn is_news(event: &Event, root: &Path, ours: Option<&Path>) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let is_ours = |path: &Path| ours.is_some_and(|ours| is_ours(path, ours));
    event.need_rescan() || event.paths.iter().any(|path| !is_hidden(path, root) && !is_ours(path))
}

fn is_hidden(path: &Path, root: &Path) -> bool {
    let below: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    // Ignore rules are in hidden files.
    let is_rule = below.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
    !is_rule && below.iter().any(|name| name.to_string_lossy().starts_with('.'))
}

/// The database and its log.
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
        is_news(&event, Path::new("/home/me"), Some(Path::new("/home/me/hob/memory.db")))
    }

    #[test]
    fn reads_hidden_files_and_own_writes_are_ignored() {
        let created = EventKind::Create(CreateKind::File);
        assert!(news(created, "/home/me/notes/a.md"));
        assert!(news(created, "/home/me/.gitignore"));
        assert!(!news(EventKind::Access(AccessKind::Any), "/home/me/notes/a.md"));
        assert!(!news(created, "/home/me/.cache/x"));
        assert!(!news(created, "/home/me/hob/memory.db-wal"));
    }
}
