//! Which files the tools of a model may read: from the path that a model names to the real file, links resolved.

use std::io;
use std::path::{Path, PathBuf};

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
    for candidate in candidates {
        let resolved = match candidate.canonicalize() {
            Ok(resolved) => resolved,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // The error does not reveal which files exist outside, so all other failures read the same.
            Err(_) => return Err(not_allowed(path)),
        };
        let Some(root) = roots.iter().find(|root| resolved.starts_with(root)) else {
            return Err(not_allowed(path));
        };
        if is_secret(&resolved) || private.iter().any(|directory| resolved.starts_with(directory)) {
            return Err(secret(path));
        }
        let below = resolved.strip_prefix(root).map_err(|_| not_allowed(path))?.to_owned();
        return Ok(AllowedPath { root: root.clone(), below });
    }
    let is_outside = path.is_absolute() && !roots.iter().any(|root| path.starts_with(root));
    Err(if is_outside {
        not_allowed(path)
    } else {
        ToolError::new(format!("there is no file '{}'", path.display()))
    })
}

fn not_allowed(path: &Path) -> ToolError {
    ToolError::new(format!("'{}' is not below a directory that may be read", path.display()))
}

fn secret(path: &Path) -> ToolError {
    ToolError::new(format!("'{}' may hold keys or passwords, and such files are never read", path.display()))
}
