//! One writer for each model, across processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Held while a model's files are written or removed. The kernel gives it back when its holder dies, however it dies.
#[derive(Debug)]
pub struct ModelLock {
    _file: File,
}

impl ModelLock {
    /// `None` when another holder has it.
    pub fn try_take(dir: &Path, id: &str) -> io::Result<Option<Self>> {
        // The file stays behind: removing it would let two writers lock two different files of this name.
        let path = dir.join(format!(".{id}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(ModelLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
