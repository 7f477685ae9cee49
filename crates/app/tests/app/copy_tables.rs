//! Every table is copied between databases, or is known to need no copy.

use std::collections::BTreeSet;

use hob_app::{POSTGRES_MIGRATIONS, state_files};
use hob_db::copy::CopyTable;
use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, count_rows};
use hob_testkit::PostgresServer;

/// Tables of SQLite that are made of others, or count versions or changes.
const NOT_COPIED_FROM_SQLITE: &[&str] =
    &["schema_version", "api_key_changes", "memory_code", "memory_vector_gone"];

/// Tables of PostgreSQL that are made of others, count versions or changes, or are of running processes.
const NOT_COPIED_FROM_POSTGRES: &[&str] =
    &["schema_version", "api_key_changes", "memory_words", "channel_lease", "channel_outbox"];

fn names<'a>(tables: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    tables.into_iter().map(str::to_owned).collect()
}

fn copied_tables() -> Vec<CopyTable> {
    state_files().into_iter().flat_map(|file| file.tables).collect()
}

#[test]
fn every_table_of_sqlite_is_copied() {
    let root = tempfile::tempdir().expect("a directory");
    let mut found = BTreeSet::new();
    for file in state_files() {
        let path = root.path().join(file.name);
        drop(Database::open(&path, file.migrations).expect("made"));
        found.extend(count_rows(&path).expect("counted").into_keys());
    }
    let tables = copied_tables();
    let copied = tables.iter().map(|table| table.sqlite.map_or(table.name, |form| form.table));
    assert_eq!(found, names(copied.chain(NOT_COPIED_FROM_SQLITE.iter().copied())));
}

#[test]
fn every_table_of_postgresql_is_copied() {
    let created = PostgresServer::shared().create_database();
    let database =
        PostgresDatabase::new(created.url().parse().expect("a URL"), POSTGRES_MIGRATIONS).expect("opened");
    let found = database.read(|transaction| {
        let rows =
            transaction.query("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'", &[])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<BTreeSet<String>, _>>()
    });
    let tables = copied_tables();
    // The first vector creates its table.
    let copied = tables.iter().map(|table| table.name).filter(|name| *name != "memory_vector");
    assert_eq!(found.expect("read"), names(copied.chain(NOT_COPIED_FROM_POSTGRES.iter().copied())));
}
