//! Puts a backup in the place of the present data, which is moved aside if it is replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::DatabaseError;
use hob_db::copy::{CopyError, CopyReport, ExistingRows};
use hob_db::postgres::PostgresDatabase;

use crate::backup::OpenedBackup;
use crate::copy::CopyListener;
use crate::error::{BackupError, StateCopyError};
use crate::service::{BackupService, StateLocation};

/// Whether a restored backup may replace data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Never,
    /// The old data is moved aside first.
    KeepingOld,
}

/// Where the data went that a restored backup replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    pub aside: Vec<PathBuf>,
}

impl BackupService {
    /// Puts a backup in the place of what is in `to`. `home` gets what is moved aside. Nothing else may use
    /// `to`. Blocks.
    pub fn restore(
        &self,
        backup: OpenedBackup,
        to: &StateLocation,
        home: &Path,
        replace: Replace,
        listener: CopyListener<'_>,
    ) -> Result<Restored, BackupError> {
        let mut restored = match to {
            StateLocation::Files(directory) => self.restore_files(&backup, directory, replace)?,
            StateLocation::Postgres(database) => {
                self.check_unused(to)?;
                self.restore_to_server(&backup, database, home, replace, listener)?
            }
        };
        if replace == Replace::KeepingOld {
            restored.aside.extend((self.move_unknown)(to, home, &aside_ending())?);
        }
        Ok(restored)
    }

    fn restore_files(
        &self,
        backup: &OpenedBackup,
        home: &Path,
        replace: Replace,
    ) -> Result<Restored, BackupError> {
        let existing: Vec<PathBuf> =
            self.files.iter().map(|file| home.join(file.name)).filter(|path| path.exists()).collect();
        if let (Some(path), Replace::Never) = (existing.first(), replace) {
            return Err(BackupError::Occupied { name: path.display().to_string() });
        }
        match self.check_unused(&StateLocation::Files(home.to_owned())) {
            // What is damaged is moved aside, too.
            Ok(()) | Err(StateCopyError::Database(DatabaseError::Damaged { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        let ending = aside_ending();
        let mut restored = Restored::default();
        let rename = |from: &Path, to: &Path| {
            fs::rename(from, to).map_err(|source| BackupError::Write { path: to.to_owned(), source })
        };
        for path in existing {
            let aside = beside(&path, &ending);
            for ending in ["-wal", "-shm"] {
                let log = beside(&path, ending);
                if log.exists() {
                    rename(&log, &beside(&aside, ending))?;
                }
            }
            rename(&path, &aside)?;
            restored.aside.push(aside);
        }
        for file in &backup.manifest.files {
            rename(&backup.directory.path().join(&file.name), &home.join(&file.name))?;
        }
        Ok(restored)
    }

    fn restore_to_server(
        &self,
        backup: &OpenedBackup,
        database: &PostgresDatabase,
        home: &Path,
        replace: Replace,
        listener: CopyListener<'_>,
    ) -> Result<Restored, BackupError> {
        let copy = |existing| {
            self.files_to_postgres(backup.directory.path(), database, &backup.name, existing, listener)
        };
        // An unfinished restore of the same backup continues.
        match copy(ExistingRows::Continue) {
            Ok(CopyReport { was_complete: false, .. }) => return Ok(Restored::default()),
            Ok(_) | Err(StateCopyError::Copy(CopyError::Occupied { .. } | CopyError::OtherSource { .. })) => {
            }
            Err(error) => return Err(error.into()),
        }
        if replace == Replace::Never {
            return Err(BackupError::Occupied { name: format!("the database at {}", database.server()) });
        }
        let aside = home.join(format!("before-restore-{}.zip", stamp()));
        self.back_up(&StateLocation::Postgres(database.clone()), &aside, listener)?;
        copy(ExistingRows::Delete)?;
        Ok(Restored { aside: vec![aside] })
    }
}

/// What the name of data that was moved aside ends with.
fn aside_ending() -> String {
    format!(".before-restore-{}", stamp())
}

/// Such as `20261116T131500`.
fn stamp() -> String {
    let now = Moment::of(SystemTime::now()).timestamp().to_string();
    now.chars().filter(|character| !matches!(character, '-' | ':')).take(15).collect()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
