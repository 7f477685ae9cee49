//! A lock for a file that several processes change, such as the configuration: of two changes at once, none is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::lock_file::LockFile;
use crate::write::{WriteError, create_directory};

/// How long a change usually waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Held from reading the file until the changed file is written. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct FileLock {
    _lock: LockFile,
}

impl FileLock {
    /// Waits until no other process and no other thread changes the file. Blocks.
    pub fn take(path: &Path) -> Result<Self, WriteError> {
        Self::take_within(path, PATIENCE)
    }

    /// The same, for at most so long. Blocks.
    pub fn take_within(path: &Path, patience: Duration) -> Result<Self, WriteError> {
        let lock_path = lock_path(path)?;
        let began = Instant::now();
        loop {
            match LockFile::try_take(&lock_path) {
                Ok(Some(lock)) => return Ok(FileLock { _lock: lock }),
                Ok(None) if began.elapsed() >= patience => {
                    return Err(WriteError::Busy { path: path.to_owned() });
                }
                Ok(None) => thread::sleep(PAUSE),
                Err(source) => return Err(WriteError::Write { path: lock_path, source }),
            }
        }
    }
}

/// The file that is locked, beside the changed file: every change replaces that one, and a lock on it would be lost.
fn lock_path(path: &Path) -> Result<PathBuf, WriteError> {
    // Two links to one file have one lock.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_directory(directory)
        .map_err(|source| WriteError::Directory { path: directory.to_owned(), source })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(directory.join(format!(".{name}.lock")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_change_holds_is_reported_as_busy() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("deep/config.toml");
        let held = FileLock::take(&path).expect("free");
        let refused = FileLock::take_within(&path, Duration::ZERO).expect_err("taken");
        assert_eq!(
            refused.to_string(),
            format!("another program is changing {}. Try again.", path.display())
        );
        drop(held);
        FileLock::take_within(&path, Duration::ZERO).expect("free again");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_has_the_lock_of_its_file() {
        let root = tempfile::tempdir().expect("a directory");
        let (kept, link) = (root.path().join("kept.toml"), root.path().join("config.toml"));
        fs::write(&kept, "").expect("written");
        std::os::unix::fs::symlink(&kept, &link).expect("linked");
        let _held = FileLock::take(&kept).expect("free");
        FileLock::take_within(&link, Duration::ZERO).expect_err("taken");
    }
}
