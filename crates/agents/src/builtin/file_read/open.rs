//! Opens a file so that no link can replace it between the check and the opening.

use std::fs::File;

use hob_core::ToolError;
use hob_core::allowed_path::AllowedPath;

/// Opens an ordinary file.
pub fn open(place: &AllowedPath) -> Result<File, ToolError> {
    let file = walk(place)
        .map_err(|error| ToolError::new(format!("cannot open '{}': {error}", place.below.display())))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file.then_some(file).ok_or_else(|| {
        ToolError::new(format!(
            "'{}' is not a regular file; only text files can be read",
            place.below.display()
        ))
    })
}

/// Opens one directory after the other from the root, and follows no link: the resolved path has none.
#[cfg(unix)]
fn walk(place: &AllowedPath) -> std::io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    // Non-blocking, because a FIFO would block until it is written.
    let file = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::RDONLY;
    let mut current = openat(CWD, &place.root, directory, Mode::empty())?;
    let mut names = place.below.iter().peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { directory } else { file };
        current = openat(&current, name, flags, Mode::empty())?;
    }
    Ok(File::from(current))
}

/// Other systems open the resolved path.
#[cfg(not(unix))]
fn walk(place: &AllowedPath) -> std::io::Result<File> {
    File::open(place.root.join(&place.below))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_link_created_after_the_check_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("open")).unwrap();
        std::fs::create_dir(root.join("outside")).unwrap();
        std::fs::write(root.join("outside/secret.txt"), "s3cret").unwrap();
        std::os::unix::fs::symlink(root.join("outside"), root.join("open/directory")).unwrap();
        std::os::unix::fs::symlink(root.join("outside/secret.txt"), root.join("open/file.txt")).unwrap();
        for below in ["directory/secret.txt", "file.txt"] {
            let place = AllowedPath { root: root.join("open"), below: below.into() };
            assert!(open(&place).is_err(), "{below}");
        }
        let honest = AllowedPath { root: root.join("outside"), below: "secret.txt".into() };
        assert!(open(&honest).is_ok());
    }
}
