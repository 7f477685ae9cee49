//! A lock that one process of the machine has at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// A locked file. The kernel releases the lock when the process ends, however it ends.
///
/// The file itself stays: if it was deleted, two processes could lock two different files of this name.
#[derive(Debug)]
pub struct LockFile {
    _file: File,
}

impl LockFile {
    /// Creates the file if it is missing. `None` if another process, or another part of this one, has the lock.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(LockFile { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // Some file systems have no locks. Work without a lock is better than none.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Some(LockFile { _file: file }))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_at_a_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let held = LockFile::try_take(&path).expect("created");
        assert!(held.is_some());
        assert!(LockFile::try_take(&path).expect("opened").is_none());
        drop(held);
        assert!(LockFile::try_take(&path).expect("opened").is_some());
        LockFile::try_take(&directory.path().join("missing/lock")).expect_err("no directory");
    }
}
