//! SQLite files of older versions, and what is in them.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// A database as an older Hob of this version left it.
pub fn left_at(scripts: &[&str], version: usize, path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a file");
    for script in &scripts[..version] {
        connection.execute_batch(script).expect("a good script");
    }
    connection
}

/// A path in a new directory.
pub fn file(name: &str) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join(name);
    (root, path)
}

/// What SQLite finds wrong with a file: nothing but `ok` if it is whole.
pub fn damage(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).expect("a file");
    let mut statement = connection.prepare("PRAGMA integrity_check").expect("it can be asked for");
    let lines = statement.query_map([], |row| row.get(0)).expect("it has rows");
    lines.collect::<Result<_, _>>().expect("of text")
}

pub fn user_version(connection: &Connection) -> i64 {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("readable")
}

/// The SQL of all tables and indexes.
pub fn schema(connection: &Connection) -> Vec<String> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut statement = connection.prepare(sql).expect("the schema can be asked for");
    let lines = statement.query_map([], |row| row.get(0)).expect("it has rows");
    lines.collect::<Result<_, _>>().expect("of text")
}

/// The number of migrations, by capability.
pub fn versions(connection: &Connection) -> Vec<(String, i64)> {
    let sql = "SELECT capability, version FROM schema_version ORDER BY capability";
    let mut statement = connection.prepare(sql).expect("the versions can be asked for");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("it has rows");
    rows.collect::<Result<_, _>>().expect("of versions")
}
