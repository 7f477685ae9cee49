//! Backs up, restores and copies the databases, whether they are in SQLite files or in PostgreSQL.
//!
//! | file | content |
//! |---|---|
//! | `service` | the service, and what its caller says about the databases |
//! | `backup` | writes a backup, and checks and extracts one |
//! | `restore` | puts a backup in the place of the present data |
//! | `copy` | copies all data between files and PostgreSQL |
//!
//! Knows no capability: the caller lists the files, their migrations and their tables. Every call blocks.

mod backup;
mod copy;
mod error;
mod restore;
mod service;

pub use backup::{BackupFile, BackupManifest, OpenedBackup};
pub use copy::CopyListener;
pub use error::{BackupError, StateCopyError};
pub use restore::{Replace, Restored};
pub use service::{BackupOptions, BackupService, MoveUnknownFn, StateFile, StateLocation};
