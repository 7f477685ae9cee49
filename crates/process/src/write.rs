//! Writes a file, whole or not at all.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

/// What to do with a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    Refuse,
    Force,
}

#[derive(Debug, Error)]
pub enum WriteError {
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },

    #[error("cannot create the directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },

    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("cannot copy {} before it is replaced", path.display())]
    Copy { path: PathBuf, source: io::Error },

    #[error("another program is changing {}. Try again.", path.display())]
    Busy { path: PathBuf },
}

/// Writes `text` to `path` and creates missing directories. Only the owner can read a new file: it may contain a key. A file that is
/// replaced keeps its permissions.
///
/// The text is written to a temporary file and then moved, so that no reader sees half of it. The move also detects an
/// existing file: of two that write at once, one is refused.
pub fn write_new(path: &Path, text: &str, overwrite: Overwrite) -> Result<(), WriteError> {
    // The target of a link is replaced, not the link.
    let path = match (overwrite, fs::canonicalize(path)) {
        (Overwrite::Force, Ok(target)) => target,
        _ => path.to_owned(),
    };
    let directory = directory_of(&path);
    create_directory(directory)
        .map_err(|source| WriteError::Directory { path: directory.to_owned(), source })?;
    let temporary = write_beside(directory, text.as_bytes())
        .map_err(|source| WriteError::Write { path: path.clone(), source })?;
    if overwrite == Overwrite::Force
        && let Ok(before) = fs::metadata(&path)
    {
        // A group that could read the file still can.
        fs::set_permissions(temporary.path(), before.permissions())
            .map_err(|source| WriteError::Write { path: path.clone(), source })?;
    }
    let moved = match overwrite {
        Overwrite::Refuse => temporary.persist_noclobber(&path),
        Overwrite::Force => temporary.persist(&path),
    };
    match moved.map_err(|failure| failure.error) {
        Ok(_) => {
            let synced = sync_directory(directory);
            synced.map_err(|source| WriteError::Write { path: path.clone(), source })
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(WriteError::Exists { path }),
        Err(source) => Err(WriteError::Write { path, source }),
    }
}

/// Copies the file at `path` to the first free name of `….old-1`, `….old-2` and so on, and returns that name; `None` if there is no
/// file. Only the owner can read the copy.
pub fn keep_copy(path: &Path) -> Result<Option<PathBuf>, WriteError> {
    let failed = |source| WriteError::Copy { path: path.to_owned(), source };
    let contents = match fs::read(path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let directory = directory_of(path);
    let mut copy = write_beside(directory, &contents).map_err(failed)?;
    let mut number = 1_u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".old-{number}"));
        let name = PathBuf::from(name);
        copy = match copy.persist_noclobber(&name) {
            Ok(_) => {
                sync_directory(directory).map_err(failed)?;
                return Ok(Some(name));
            }
            Err(refusal) if refusal.error.kind() == ErrorKind::AlreadyExists => refusal.file,
            Err(refusal) => return Err(failed(refusal.error)),
        };
        number += 1;
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file is readable by its owner only from the moment it exists, and is removed if it is not moved.
fn write_beside(directory: &Path, contents: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A move survives a power cut after its directory is synced.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(path)?.sync_all()?;
    Ok(())
}

pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("the directory exists");
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_new_file_is_for_its_owner_only() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("deep/.hob/config.toml");
        write_new(&path, "a = 1\n", Overwrite::Refuse).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "a = 1\n");
        assert_eq!(names(path.parent().expect("a parent")), ["config.toml"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().expect("a parent")), 0o700);
        }
    }

    #[test]
    fn an_existing_file_is_only_replaced_by_force() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.toml");
        fs::write(&path, "mine").expect("written");
        let refusal = write_new(&path, "new", Overwrite::Refuse).expect_err("refused");
        assert_eq!(refusal.to_string(), format!("{} already exists", path.display()));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "mine");
        write_new(&path, "new", Overwrite::Force).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "new");
        assert_eq!(names(root.path()), ["config.toml"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
            write_new(&path, "newer", Overwrite::Force).expect("written");
            assert_eq!(fs::metadata(&path).expect("exists").permissions().mode() & 0o777, 0o640);
        }
    }

    #[test]
    fn copies_of_old_files_are_numbered() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.toml");
        assert_eq!(keep_copy(&path).expect("nothing to copy"), None);
        for (text, name) in [("first", "config.toml.old-1"), ("second", "config.toml.old-2")] {
            fs::write(&path, text).expect("written");
            let copy = root.path().join(name);
            assert_eq!(keep_copy(&path).expect("copied").as_ref(), Some(&copy));
            assert_eq!(fs::read_to_string(&copy).expect("readable"), text);
        }
        assert_eq!(names(root.path()).len(), 3);
    }

    #[test]
    fn of_many_that_write_at_once_one_succeeds() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.toml");
        let written: Vec<usize> = std::thread::scope(|scope| {
            let path = &path;
            let writers: Vec<_> = (0..16)
                .map(|number| {
                    scope.spawn(move || write_new(path, &number.to_string(), Overwrite::Refuse).is_ok())
                })
                .collect();
            let succeeded = writers.into_iter().map(|writer| writer.join().expect("no panic")).enumerate();
            succeeded.filter(|(_, succeeded)| *succeeded).map(|(number, _)| number).collect()
        });
        let [winner] = written[..] else { panic!("these all believe to have written: {written:?}") };
        assert_eq!(fs::read_to_string(&path).expect("readable"), winner.to_string());
        assert_eq!(names(root.path()), ["config.toml"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_file_is_replaced_where_it_is_kept() {
        let root = tempfile::tempdir().expect("a directory");
        let kept = root.path().join("dotfiles.toml");
        let link = root.path().join("config.toml");
        fs::write(&kept, "old").expect("written");
        std::os::unix::fs::symlink(&kept, &link).expect("linked");
        write_new(&link, "new", Overwrite::Force).expect("written");
        assert_eq!(fs::read_to_string(&kept).expect("readable"), "new");
        assert!(link.symlink_metadata().expect("exists").is_symlink());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let blocker = root.path().join("file");
        fs::write(&blocker, "").expect("written");
        let error =
            write_new(&blocker.join("config.toml"), "x", Overwrite::Refuse).expect_err("no directory");
        assert_eq!(error.to_string(), format!("cannot create the directory {}", blocker.display()));
        let error = write_new(root.path(), "x", Overwrite::Force).expect_err("a directory is in the way");
        assert!(error.to_string().starts_with("cannot write "), "{error}");
    }
}
