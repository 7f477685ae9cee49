//! The databases: where they are, which tables they have, and their state for `hob doctor`.

use std::path::{Path, PathBuf};

use hob_db::{DatabaseError, DatabaseState, LazyDatabase, Migrations, inspect};

/// The file of the calls, tasks and conversations, in the configuration directory.
pub(crate) const DATABASE: &str = "hob.db";

/// The file of the user's documents. A separate file, because it is large and indexing can rebuild it.
pub(crate) const MEMORY_DATABASE: &str = "memory.db";

/// The tables of `hob.db`: calls, tasks, conversations, keys and what the router learned.
pub const HOB_MIGRATIONS: &[Migrations] = &[
    hob_telemetry::MIGRATIONS,
    hob_tasks::MIGRATIONS,
    hob_channels::MIGRATIONS,
    hob_routing::MIGRATIONS,
    hob_conversations::MIGRATIONS,
    hob_keys::MIGRATIONS,
];

/// The tables of `memory.db`: the user's documents.
pub const MEMORY_MIGRATIONS: &[Migrations] = &[hob_memory::MIGRATIONS];

/// The database of the calls, tasks and conversations in `home`. Opens and creates nothing yet.
pub fn hob_database(home: &Path) -> LazyDatabase {
    LazyDatabase::at(&home.join(DATABASE), HOB_MIGRATIONS)
}

/// One database and its state.
#[derive(Debug)]
pub struct DatabaseReport {
    pub path: PathBuf,
    pub kind: DatabaseKind,
    /// `None` if there is no file yet.
    pub state: Result<Option<DatabaseState>, DatabaseError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// Calls, tasks, conversations.
    Record,
    /// The index of the user's documents.
    Memory,
}

/// The state of the databases in `home`. Creates nothing. Blocks.
pub fn inspect_databases(home: &Path) -> Vec<DatabaseReport> {
    let kinds = [
        (DatabaseKind::Record, DATABASE, HOB_MIGRATIONS),
        (DatabaseKind::Memory, MEMORY_DATABASE, MEMORY_MIGRATIONS),
    ];
    let look = |(kind, file, migrations)| {
        let path = home.join(file);
        let state = inspect(&path, migrations);
        DatabaseReport { path, kind, state }
    };
    kinds.map(look).into()
}
