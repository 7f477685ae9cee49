//! The databases of the house, for those who want to know how they are. Opens none for work.

use std::path::{Path, PathBuf};

use hob_store::{Condition, Schema, StoreError, inspect};

use crate::memory;

/// The file of the calls, tasks and conversations, in the configuration directory.
pub(crate) const DATABASE: &str = "hob.db";

/// One database, and how it is.
#[derive(Debug)]
pub struct Database {
    pub path: PathBuf,
    pub kind: DatabaseKind,
    /// `None` where there is no file yet.
    pub condition: Result<Option<Condition>, StoreError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// Calls, tasks, conversations.
    Record,
    /// What is known of the user's documents.
    Memory,
}

/// How the databases in `home` are. Creates nothing. Blocks.
pub fn inspect_databases(home: &Path) -> Vec<Database> {
    let kinds =
        [(DatabaseKind::Record, DATABASE, Schema::HOB), (DatabaseKind::Memory, memory::FILE, Schema::MEMORY)];
    let look = |(kind, file, schema)| {
        let path = home.join(file);
        let condition = inspect(&path, schema);
        Database { path, kind, condition }
    };
    kinds.map(look).into()
}
