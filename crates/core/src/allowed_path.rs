//! Which files the tools of a model may read: from the path that a model names to the real file, links resolved.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::secret_paths::is_secret;
use crate::tool::ToolError;

/// Where tools may read.
#[derive(Debug, Clone, Default)]
pub struct AllowedRoots {
    /// Directories below which files may be read. With none, nothing is allowed.
    pub roots: Vec<PathBuf>,
    /// Directories that are never read, even below a root: Hob's own home.
    pub private: Vec<PathBuf>,
}

/// A file below a root, with every link resolved.
#[derive(Debug, PartialEq, Eq)]
pub struct AllowedPath {
    pub root: PathBuf,
    /// The way from the root: ordinary names only.
    pub below: PathBuf,
}

/// Finds the file that `path` means. An absolute path is taken as it is, any other is looked for in every root.
pub fn locate(path: &Path, allowed: &AllowedRoots) -> Result<AllowedPath, ToolError> {
    // A root that is not there (yet) allows nothing.
    let roots: Vec<PathBuf> = allowed.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let private: Vec<PathBuf> = allowed.private.iter().filter_map(|path| path.canonicalize().ok()).collect();
    if is_secret(path) {
        return Err(secret(path));
    }
    let candidates: Vec<PathBuf> = match path.is_absolute() {
        true => vec![path.to_owned()],
        false => roots.iter().map(|root| root.join(path)).collect(),
    };
    let mut is_outside = false;
    for candidate in candidates {
        let target = resolve(&candidate);
        let found = target.as_ref().and_then(|target| {
            let root = roots.iter().find(|root| target.real.starts_with(root))?;
            Some((root, target))
        });
        let Some((root, target)) = found else {
            is_outside = true;
            continue;
        };
        if is_secret(&target.real) || private.iter().any(|directory| target.real.starts_with(directory)) {
            return Err(secret(path));
        }
        if target.exists {
            let below = target.real.strip_prefix(root).map_err(|_| not_allowed(path))?.to_owned();
            return Ok(AllowedPath { root: root.clone(), below });
        }
    }
    Err(if is_outside {
        not_allowed(path)
    } else {
        ToolError::new(format!("there is no file '{}'", path.display()))
    })
}

/// Where a path leads.
struct Target {
    /// Without links. For a file that does not exist, the last part of the way to it that exists.
    real: PathBuf,
    exists: bool,
}

/// Resolves a path, also that of a file that does not exist: an error must not reveal which files exist outside the roots, so
/// existing and missing files there must look the same. `None` if it cannot be said where the path leads.
fn resolve(candidate: &Path) -> Option<Target> {
    match candidate.canonicalize() {
        Ok(real) => return Some(Target { real, exists: true }),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(_) => return None,
    }
    // A link to nothing exists, and cannot be resolved.
    let existing = candidate.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    let missing = candidate.strip_prefix(existing).ok()?;
    let stays_below = missing.components().all(|part| matches!(part, Component::Normal(_)));
    let real = existing.canonicalize().ok().filter(|_| stays_below)?;
    Some(Target { real, exists: false })
}

fn not_allowed(path: &Path) -> ToolError {
    ToolError::new(format!("'{}' is not below a directory that may be read", path.display()))
}

fn secret(path: &Path) -> ToolError {
    ToolError::new(format!("'{}' may hold keys or passwords, and such files are never read", path.display()))
}
