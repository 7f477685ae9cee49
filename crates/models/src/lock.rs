//! A lock for each model, across processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Held while the files of a model are written or deleted. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct ModelLock {
    _file: File,
}

impl ModelLock {
    /// `None` if it is taken.
    pub fn try_take(dir: &Path, id: &str) -> io::Result<Option<Self>> {
        // The file stays: deleting it would let two writers lock two different files of this name.
        let path = dir.join(format!(".{id}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(ModelLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
