//! Copies all data between the files of a home directory and PostgreSQL.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hob_db::copy::{
    CopyProgress, CopyReport, CopyRequest, ExistingRows, check_postgres_target, check_sqlite_target,
    copy_to_postgres, copy_to_sqlite,
};
use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, DatabaseError, settle_file};

use crate::error::StateCopyError;
use crate::service::{BackupService, StateLocation};

/// How long to wait for programs that are just ending.
const CLOSING: Duration = Duration::from_secs(5);
const CLOSING_CHECK: Duration = Duration::from_millis(100);

/// Gets the progress after each batch.
pub type CopyListener<'a> = &'a dyn Fn(&CopyProgress<'_>);

impl BackupService {
    /// Copies everything. Nothing else may use source or target. Blocks.
    pub fn copy(
        &self,
        from: &StateLocation,
        to: &StateLocation,
        existing: ExistingRows,
        listener: CopyListener<'_>,
    ) -> Result<CopyReport, StateCopyError> {
        for place in [from, to] {
            self.check_unused(place)?;
        }
        match (from, to) {
            (StateLocation::Files(home), StateLocation::Postgres(database)) => {
                let source = home.canonicalize().unwrap_or_else(|_| home.clone()).display().to_string();
                self.files_to_postgres(home, database, &source, existing, listener)
            }
            (StateLocation::Postgres(database), StateLocation::Files(home)) => {
                self.postgres_to_files(database, home, existing, listener)
            }
            _ => Err(StateCopyError::SameKind),
        }
    }

    /// Fails if another program uses the files or the database.
    pub(crate) fn check_unused(&self, place: &StateLocation) -> Result<(), StateCopyError> {
        match place {
            StateLocation::Files(home) => self.files.iter().try_for_each(|file| {
                settle_file(&home.join(file.name)).map_err(|error| match error {
                    DatabaseError::Busy { path, .. } => StateCopyError::FileInUse { path },
                    other => other.into(),
                })
            }),
            StateLocation::Postgres(database) => {
                let end = Instant::now() + CLOSING;
                loop {
                    match database.count_others()? {
                        0 => return Ok(()),
                        // The server notices the end of a program a little later.
                        _ if Instant::now() < end => thread::sleep(CLOSING_CHECK),
                        connections => {
                            let server = database.server().to_owned();
                            return Err(StateCopyError::ServerInUse { server, connections });
                        }
                    }
                }
            }
        }
    }

    /// `source` is how an unfinished copy is recognised.
    pub(crate) fn files_to_postgres(
        &self,
        home: &Path,
        database: &PostgresDatabase,
        source: &str,
        existing: ExistingRows,
        listener: CopyListener<'_>,
    ) -> Result<CopyReport, StateCopyError> {
        if !self.files.iter().any(|file| home.join(file.name).exists()) {
            return Err(StateCopyError::NothingThere { path: home.to_owned() });
        }
        let mut sources = Vec::new();
        for file in &self.files {
            let path = home.join(file.name);
            // What has no file is empty, and so are its tables after the copy.
            let opened = match path.exists() {
                true => Database::open(&path, file.migrations)?,
                false => Database::in_memory(file.migrations)?,
            };
            sources.push((opened, file.tables.as_slice()));
        }
        // First, so that nothing is copied if one of the files is refused.
        for (_, tables) in &sources {
            check_postgres_target(database, &CopyRequest { tables, source, existing, listener })?;
        }
        let mut whole = CopyReport { was_complete: true, ..CopyReport::default() };
        for (opened, tables) in &sources {
            let request = CopyRequest { tables, source, existing, listener };
            add(&mut whole, copy_to_postgres(opened, database, &request)?);
        }
        for after_copy in self.files.iter().filter_map(|file| file.after_copy) {
            after_copy(database)?;
        }
        Ok(whole)
    }

    pub(crate) fn postgres_to_files(
        &self,
        database: &PostgresDatabase,
        home: &Path,
        existing: ExistingRows,
        listener: CopyListener<'_>,
    ) -> Result<CopyReport, StateCopyError> {
        // First, so that nothing is copied if one of the files is refused.
        for file in &self.files {
            let path = home.join(file.name);
            if path.exists() {
                let request =
                    CopyRequest { tables: &file.tables, source: database.server(), existing, listener };
                check_sqlite_target(&Database::open(&path, file.migrations)?, &request)?;
            }
        }
        let mut whole = CopyReport { was_complete: true, ..CopyReport::default() };
        for file in &self.files {
            let path = home.join(file.name);
            if let Some(is_needed) = file.is_needed
                && !path.exists()
                && !is_needed(database)?
            {
                continue;
            }
            let opened = Database::open(&path, file.migrations)?;
            let request = CopyRequest { tables: &file.tables, source: database.server(), existing, listener };
            add(&mut whole, copy_to_sqlite(database, &opened, &request)?);
        }
        Ok(whole)
    }
}

fn add(whole: &mut CopyReport, part: CopyReport) {
    whole.tables.extend(part.tables);
    whole.copied += part.copied;
    whole.was_complete &= part.was_complete;
}
