//! What kind of failure keeps a model from being downloaded or deleted, for callers who answer each kind differently.

use crate::directory::ModelDirectoryError;
use crate::pull::PullError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryFailure {
    /// There is no such model.
    NotFound,
    /// It cannot be done here, however often it is tried.
    Impossible,
    /// Another download or request uses the model.
    Busy,
    /// The source of the model fails.
    Source,
    /// The disk or the memory of this machine fails.
    Disk,
}

impl PullError {
    pub fn failure(&self) -> LibraryFailure {
        match self {
            PullError::NoSuchRepository { .. } | PullError::NoSuchFile { .. } => LibraryFailure::NotFound,
            PullError::Ambiguous { .. } | PullError::BadName { .. } | PullError::NameTaken { .. } => {
                LibraryFailure::Impossible
            }
            PullError::DiskFull { .. } | PullError::Io { .. } | PullError::Directory(_) => {
                LibraryFailure::Disk
            }
            _ => LibraryFailure::Source,
        }
    }
}

impl ModelDirectoryError {
    pub fn failure(&self) -> LibraryFailure {
        match self {
            ModelDirectoryError::NotFound { .. } => LibraryFailure::NotFound,
            ModelDirectoryError::Busy { .. } => LibraryFailure::Busy,
            ModelDirectoryError::Io { .. } => LibraryFailure::Disk,
        }
    }
}
