//! Creates the database file, readable by its owner only. SQLite gives the files beside it the same permissions.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{DatabaseError, DbResult};

/// Creates the file at `path` and its directories if they do not exist.
///
/// A new file is created under another name and closed before the rename: closing a database file would release the locks that
/// another thread of this process may hold on it.
pub(crate) fn create(path: &Path) -> DbResult<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_directory(directory)
        .map_err(|source| DatabaseError::Directory { path: directory.to_owned(), source })?;
    match create_empty(directory, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created.map_err(|source| DatabaseError::Create { path: path.to_owned(), source }),
    }
}

fn create_empty(directory: &Path, path: &Path) -> io::Result<()> {
    let closed = NamedTempFile::new_in(directory)?.into_temp_path();
    Ok(closed.persist_noclobber(path)?)
}

fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
