//! Copies all state between the files of a home directory and PostgreSQL. Knows which tables belong together, and nothing of what
//! they contain.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hob_db::copy::{
    CopyError, CopyProgress, CopyReport, CopyRequest, CopyTable, ExistingRows, check_postgres_target,
    check_sqlite_target, copy_to_postgres, copy_to_sqlite,
};
use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, DatabaseError, Migrations, settle_file};
use hob_memory::{MemoryStore, PostgresMemoryStore};
use thiserror::Error;

use crate::databases::{DATABASE, HOB_MIGRATIONS, MEMORY_DATABASE, MEMORY_MIGRATIONS};

/// How long to wait for programs that are just ending.
const CLOSING: Duration = Duration::from_secs(5);
const CLOSING_CHECK: Duration = Duration::from_millis(100);

/// The tables of `hob.db` that are copied.
pub fn hob_copy_tables() -> Vec<CopyTable> {
    let capabilities = [
        hob_telemetry::COPY_TABLES,
        hob_tasks::COPY_TABLES,
        hob_channels::COPY_TABLES,
        hob_routing::COPY_TABLES,
        hob_conversations::COPY_TABLES,
        hob_keys::COPY_TABLES,
        hob_sources::COPY_TABLES,
    ];
    capabilities.concat()
}

/// The tables of `memory.db` that are copied.
pub fn memory_copy_tables() -> Vec<CopyTable> {
    hob_memory::COPY_TABLES.to_vec()
}

/// Where state is copied from or to.
pub enum StateLocation {
    /// The files in a home directory.
    Files(PathBuf),
    Postgres(PostgresDatabase),
}

impl StateLocation {
    /// For messages.
    pub fn name(&self) -> String {
        match self {
            StateLocation::Files(home) => home.display().to_string(),
            StateLocation::Postgres(database) => database.server().to_owned(),
        }
    }
}

#[derive(Debug, Error)]
pub enum StateCopyError {
    #[error(transparent)]
    Copy(#[from] CopyError),

    #[error(transparent)]
    Database(#[from] DatabaseError),

    #[error("there is nothing to copy: {} has no database of Hob", path.display())]
    NothingThere { path: PathBuf },

    #[error(
        "source and target must be different kinds: one in files, one in PostgreSQL. To copy files, use 'hob backup'."
    )]
    SameKind,

    #[error("the file {} is in use. Stop the Hob server and all other programs that use it, and try again.", path.display())]
    FileInUse { path: PathBuf },

    #[error(
        "{connections} other connections of Hob use the database at {server}. Stop all Hob servers and commands that use it, and try \
         again."
    )]
    ServerInUse { server: String, connections: u64 },
}

/// Gets the progress after each batch.
pub type CopyListener<'a> = &'a dyn Fn(&CopyProgress<'_>);

/// Copies everything. Nothing else may use source or target. Blocks.
pub fn copy_state(
    from: &StateLocation,
    to: &StateLocation,
    existing: ExistingRows,
    listener: CopyListener<'_>,
) -> Result<CopyReport, StateCopyError> {
    for place in [from, to] {
        check_unused(place)?;
    }
    match (from, to) {
        (StateLocation::Files(home), StateLocation::Postgres(database)) => {
            let source = home.canonicalize().unwrap_or_else(|_| home.clone()).display().to_string();
            files_to_postgres(home, database, &source, existing, listener)
        }
        (StateLocation::Postgres(database), StateLocation::Files(home)) => {
            postgres_to_files(database, home, existing, listener)
        }
        _ => Err(StateCopyError::SameKind),
    }
}

/// Fails if another program uses the files or the database.
pub(crate) fn check_unused(place: &StateLocation) -> Result<(), StateCopyError> {
    match place {
        StateLocation::Files(home) => [DATABASE, MEMORY_DATABASE].into_iter().try_for_each(|file| {
            let path = home.join(file);
            settle_file(&path).map_err(|error| match error {
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

/// One file, its tables, and how to open it.
struct FileTables {
    file: &'static str,
    migrations: &'static [Migrations],
    tables: Vec<CopyTable>,
}

fn groups() -> [FileTables; 2] {
    [
        FileTables { file: DATABASE, migrations: HOB_MIGRATIONS, tables: hob_copy_tables() },
        FileTables { file: MEMORY_DATABASE, migrations: MEMORY_MIGRATIONS, tables: memory_copy_tables() },
    ]
}

/// `source` is how an unfinished copy is recognised.
pub(crate) fn files_to_postgres(
    home: &Path,
    database: &PostgresDatabase,
    source: &str,
    existing: ExistingRows,
    listener: CopyListener<'_>,
) -> Result<CopyReport, StateCopyError> {
    if !groups().iter().any(|group| home.join(group.file).exists()) {
        return Err(StateCopyError::NothingThere { path: home.to_owned() });
    }
    let mut sources = Vec::new();
    for FileTables { file, migrations, tables } in groups() {
        let path = home.join(file);
        // What has no file is empty, and so are its tables after the copy.
        let opened = match path.exists() {
            true => Database::open(&path, migrations)?,
            false => Database::in_memory(migrations)?,
        };
        sources.push((opened, tables));
    }
    // First, so that nothing is copied if one of the groups is refused.
    for (_, tables) in &sources {
        check_postgres_target(database, &CopyRequest { tables, source, existing, listener })?;
    }
    let mut whole = CopyReport { was_complete: true, ..CopyReport::default() };
    for (opened, tables) in &sources {
        let request = CopyRequest { tables, source, existing, listener };
        add(&mut whole, copy_to_postgres(opened, database, &request)?);
    }
    // Builds the indexes, which takes less time than adding each vector to them.
    PostgresMemoryStore::new(database.clone()).sync()?;
    Ok(whole)
}

pub(crate) fn postgres_to_files(
    database: &PostgresDatabase,
    home: &Path,
    existing: ExistingRows,
    listener: CopyListener<'_>,
) -> Result<CopyReport, StateCopyError> {
    // First, so that nothing is copied if one of the files is refused.
    for FileTables { file, migrations, tables } in groups() {
        let path = home.join(file);
        if path.exists() {
            let request = CopyRequest { tables: &tables, source: database.server(), existing, listener };
            check_sqlite_target(&Database::open(&path, migrations)?, &request)?;
        }
    }
    let mut whole = CopyReport { was_complete: true, ..CopyReport::default() };
    for FileTables { file, migrations, tables } in groups() {
        let path = home.join(file);
        let is_empty_memory =
            file == MEMORY_DATABASE && !PostgresMemoryStore::new(database.clone()).has_sources()?;
        if is_empty_memory && !path.exists() {
            continue;
        }
        let opened = Database::open(&path, migrations)?;
        let request = CopyRequest { tables: &tables, source: database.server(), existing, listener };
        add(&mut whole, copy_to_sqlite(database, &opened, &request)?);
    }
    Ok(whole)
}

fn add(whole: &mut CopyReport, part: CopyReport) {
    whole.tables.extend(part.tables);
    whole.copied += part.copied;
    whole.was_complete &= part.was_complete;
}
