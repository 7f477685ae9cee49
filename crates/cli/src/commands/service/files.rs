//! Writes and removes the files of a service. Files that others wrote stay as they are.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hob_process::{Overwrite, write_new};

use super::definition::{FileOwner, MARK, ServiceFile};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    Created,
    Replaced,
    None,
}

/// Writes a file if it is missing or, unless it belongs to the administrator, different.
pub fn write_file(file: &ServiceFile) -> Result<FileChange> {
    let path = &file.path;
    let change = match (read(path)?, &file.owner) {
        (None, _) => FileChange::Created,
        (Some(_), FileOwner::Administrator { .. }) => return Ok(FileChange::None),
        (Some(text), FileOwner::Hob) if text == file.text => return Ok(FileChange::None),
        (Some(text), FileOwner::Hob) => {
            check_ours(path, &text)?;
            FileChange::Replaced
        }
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    }
    write_new(path, &file.text, Overwrite::Force)?;
    set_mode(path, file.mode).with_context(|| format!("cannot set the mode of {}", path.display()))?;
    Ok(change)
}

/// Whether Hob wrote this file and may remove it; `false` if there is none, or if it is the administrator's. A file of others is an error.
pub fn is_removable(file: &ServiceFile) -> Result<bool> {
    match (read(&file.path)?, &file.owner) {
        (None, _) | (_, FileOwner::Administrator { .. }) => Ok(false),
        (Some(text), FileOwner::Hob) => check_ours(&file.path, &text).map(|()| true),
    }
}

pub fn remove_file(path: &Path) -> Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn check_ours(path: &Path, text: &str) -> Result<()> {
    if !text.contains(MARK) {
        bail!("{} was not written by 'hob service install'. Move it away first.", path.display());
    }
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, text: &str, owner: FileOwner) -> ServiceFile {
        ServiceFile { path: path.to_owned(), text: format!("# {MARK}\n{text}"), mode: 0o644, owner }
    }

    #[test]
    fn a_file_is_written_once_and_replaced_when_it_differs() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("systemd/user/hob.service");
        let first = file(&path, "one", FileOwner::Hob);
        assert_eq!(write_file(&first).expect("written"), FileChange::Created);
        assert_eq!(write_file(&first).expect("written"), FileChange::None);
        assert_eq!(write_file(&file(&path, "two", FileOwner::Hob)).expect("written"), FileChange::Replaced);
        assert!(is_removable(&first).expect("ours"));
        remove_file(&path).expect("removed");
        assert!(!is_removable(&first).expect("nothing to do"));
    }

    #[test]
    fn files_of_others_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("hob.service");
        std::fs::write(&path, "[Service]\n").expect("a file");
        let ours = file(&path, "one", FileOwner::Hob);
        for error in [write_file(&ours).map(drop), is_removable(&ours).map(drop)] {
            let error = error.expect_err("refused").to_string();
            assert!(error.contains("was not written by 'hob service install'"), "{error}");
        }
        let settings = file(&path, "one", FileOwner::Administrator { after_creation: Vec::new() });
        assert_eq!(write_file(&settings).expect("left alone"), FileChange::None);
        assert!(!is_removable(&settings).expect("left alone"));
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "[Service]\n");
    }
}
