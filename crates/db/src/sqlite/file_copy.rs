//! The file as a whole: a copy of it while it is in use, and whether it may be moved.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, ffi};

use crate::error::{DatabaseError, DbResult};
use crate::sqlite::inspect::peek;

/// How long to wait for a program that is just ending.
const CLOSING: Duration = Duration::from_millis(500);

/// Writes a consistent copy of the database at `path` to the new file `copy`, while others may write to the database. Does not
/// migrate it. Blocks.
pub fn copy_file(path: &Path, copy: &Path) -> DbResult<()> {
    peek(path, |connection| connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()])).map(drop)
}

/// Moves the write-ahead log into the database, so that the file alone has everything. Fails if a program uses the database, and
/// does nothing if there is none. Blocks.
pub fn settle_file(path: &Path) -> DbResult<()> {
    if !path.exists() {
        return Ok(());
    }
    let settle = || -> rusqlite::Result<()> {
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, access)?;
        connection.busy_timeout(CLOSING)?;
        // Without the log, a database has only one user. So this fails while there are others.
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
        match mode.as_str() {
            "delete" => Ok(()),
            _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
        }
    };
    settle().map_err(|error| DatabaseError::explain(path, error))
}

/// The number of rows of each table. Blocks.
pub fn count_rows(path: &Path) -> DbResult<BTreeMap<String, u64>> {
    let counted = peek(path, |connection| {
        let mut statement = connection.prepare(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )?;
        let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        let count = |name: String| {
            let rows: i64 =
                connection.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0))?;
            Ok((name, rows.unsigned_abs()))
        };
        names.into_iter().map(count).collect::<rusqlite::Result<_>>()
    })?;
    Ok(counted.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::database::Database;
    use crate::sqlite::migrations::Migrations;

    const NOTES: &[Migrations] = &[Migrations {
        capability: "notes",
        steps: &["CREATE TABLE note (text TEXT NOT NULL) STRICT"],
        legacy_versions: &[],
    }];

    #[test]
    fn a_database_in_use_is_copied_whole_and_is_not_settled() {
        let root = tempfile::tempdir().expect("a directory");
        let (path, copy) = (root.path().join("hob.db"), root.path().join("copy.db"));
        let database = Database::open(&path, NOTES).expect("made");
        database
            .write(|transaction| transaction.execute("INSERT INTO note VALUES ('a')", []))
            .expect("written");
        copy_file(&path, &copy).expect("copied");
        assert_eq!(count_rows(&copy).expect("counted")["note"], 1);
        assert!(matches!(settle_file(&path), Err(DatabaseError::Busy { .. })));
        drop(database);
        settle_file(&path).expect("nothing uses it");
        assert!(!root.path().join("hob.db-wal").exists());
        settle_file(&root.path().join("missing.db")).expect("nothing to do");
    }
}
