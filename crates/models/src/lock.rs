//! A lock for each model, across processes.

use std::io;
use std::path::Path;

use hob_process::LockFile;

/// Held while the files of a model are written or deleted. `None` if it is taken.
pub fn try_lock_model(directory: &Path, id: &str) -> io::Result<Option<LockFile>> {
    LockFile::try_take(&directory.join(format!(".{id}.lock")))
}
