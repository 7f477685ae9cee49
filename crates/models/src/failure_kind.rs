//! What kind of failure keeps a model from being downloaded or deleted, for callers who answer each kind differently.

use crate::directory::ModelDirectoryError;
use crate::pull::PullError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFailureKind {
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
    pub fn failure(&self) -> ModelFailureKind {
        match self {
            PullError::NoSuchRepository { .. } | PullError::NoSuchFile { .. } => ModelFailureKind::NotFound,
            PullError::Ambiguous { .. } | PullError::BadName { .. } | PullError::NameTaken { .. } => {
                ModelFailureKind::Impossible
            }
            PullError::DiskFull { .. } | PullError::Io { .. } | PullError::Directory(_) => {
                ModelFailureKind::Disk
            }
            _ => ModelFailureKind::Source,
        }
    }
}

impl ModelDirectoryError {
    pub fn failure(&self) -> ModelFailureKind {
        match self {
            ModelDirectoryError::NotFound { .. } => ModelFailureKind::NotFound,
            ModelDirectoryError::Busy { .. } => ModelFailureKind::Busy,
            ModelDirectoryError::Io { .. } => ModelFailureKind::Disk,
        }
    }
}
