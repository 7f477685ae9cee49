//! New databases, old ones that count one list for all tables, and those of a newer Hob.

use std::path::PathBuf;
use std::thread;

use hob_testkit::old_database::{schema, versions};

use super::*;
use crate::sqlite::database::Database;

/// Two capabilities that share a database, and the list that they once were: apple, pear, apple, pear, apple.
const FRUIT: &[Migrations] = &[
    Migrations {
        capability: "apples",
        steps: &[
            "CREATE TABLE apple (name TEXT NOT NULL) STRICT",
            "ALTER TABLE apple ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'",
            "CREATE INDEX apple_name ON apple (name)",
            "ALTER TABLE apple ADD COLUMN weight INTEGER",
        ],
        legacy_versions: &[1, 3, 5],
    },
    Migrations {
        capability: "pears",
        steps: &[
            "CREATE TABLE pear (name TEXT NOT NULL) STRICT",
            "CREATE TABLE pear_anew (name TEXT NOT NULL, ripe INTEGER NOT NULL) STRICT;
             INSERT INTO pear_anew SELECT name, 1 FROM pear;
             DROP TABLE pear;
             ALTER TABLE pear_anew RENAME TO pear",
        ],
        legacy_versions: &[2, 4],
    },
    Migrations {
        capability: "plums",
        steps: &["CREATE TABLE plum (name TEXT NOT NULL) STRICT"],
        legacy_versions: &[],
    },
];

/// How many steps the list for all tables has.
const SINGLE_LIST: i64 = 5;

fn names(connection: &Connection, table: &str) -> Vec<String> {
    let sql = format!("SELECT name FROM {table} ORDER BY name");
    let mut statement = connection.prepare(&sql).expect("a table");
    let names = statement.query_map([], |row| row.get(0)).expect("it has rows");
    names.collect::<Result<_, _>>().expect("of names")
}

/// The SQL at a place of the list for all tables.
fn step_at(place: i64) -> &'static str {
    let found = FRUIT.iter().find_map(|list| {
        let index = list.legacy_versions.iter().position(|known| *known == place)?;
        list.steps.get(index).copied()
    });
    found.expect("a step of the list")
}

/// A database as a Hob that counts one list for all tables left it after `taken` steps, with a row in each table.
fn left_at(taken: i64, path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a file");
    for place in 1..=taken {
        connection.execute_batch(step_at(place)).expect("a good step");
        let row = match place {
            1 => "INSERT INTO apple (name) VALUES ('boskoop')",
            2 => "INSERT INTO pear (name) VALUES ('conference')",
            _ => continue,
        };
        connection.execute_batch(row).expect("written");
    }
    connection.pragma_update(None, "user_version", taken).expect("written");
    connection
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("some.db");
    (root, path)
}

fn newest() -> Vec<(String, i64)> {
    [("apples", 4), ("pears", 2), ("plums", 1)].map(|(name, version)| (name.to_owned(), version)).into()
}

#[test]
fn a_database_of_any_age_ends_up_like_a_new_one_and_keeps_its_rows() {
    let fresh = schema(&Database::in_memory(FRUIT).expect("opened").writer());
    for taken in 0..=SINGLE_LIST {
        let (_root, path) = file();
        drop(left_at(taken, &path));
        let database = Database::open(&path, FRUIT).expect("opened");
        let writer = database.writer();
        assert_eq!(schema(&writer), fresh, "from version {taken}");
        assert_eq!(versions(&writer), newest(), "from version {taken}");
        assert_eq!(user_version(&writer).expect("readable"), COUNTED_BY_CAPABILITY);
        let (apples, pears) = (names(&writer, "apple"), names(&writer, "pear"));
        assert_eq!((apples.len(), pears.len()), ((taken >= 1).into(), (taken >= 2).into()), "{taken}");
    }
}

#[test]
fn an_old_database_without_new_steps_is_adopted() {
    let (_root, path) = file();
    let old = &[Migrations { steps: &FRUIT[0].steps[..1], legacy_versions: &[1], ..FRUIT[0] }];
    drop(left_at(1, &path));
    let database = Database::open(&path, old).expect("opened");
    assert_eq!(versions(&database.writer()), [("apples".to_owned(), 1)]);
    assert_eq!(user_version(&database.writer()).expect("readable"), COUNTED_BY_CAPABILITY);
    assert_eq!(names(&database.writer(), "apple"), ["boskoop"]);
}

#[test]
fn a_capability_added_later_gets_its_tables() {
    let (_root, path) = file();
    drop(Database::open(&path, &FRUIT[..1]).expect("opened"));
    let database = Database::open(&path, FRUIT).expect("opened again");
    assert_eq!(versions(&database.writer()), newest());
    // A process that knows only one of them still works.
    assert!(Database::open(&path, &FRUIT[..1]).is_ok());
    assert_eq!(versions(&database.writer()), newest());
}

#[test]
fn a_database_is_not_adopted_by_a_part_of_its_capabilities() {
    for part in [&FRUIT[..1], &FRUIT[1..2], &FRUIT[2..]] {
        let (_root, path) = file();
        let connection = left_at(SINGLE_LIST, &path);
        let before = schema(&connection);
        let refused = Database::open(&path, part).err();
        assert!(matches!(refused, Some(DatabaseError::Newer { found: SINGLE_LIST, .. })), "{refused:?}");
        assert_eq!(
            (user_version(&connection).expect("readable"), schema(&connection)),
            (SINGLE_LIST, before)
        );
    }
}

#[test]
fn several_threads_may_adopt_it_at_once() {
    let (_root, path) = file();
    drop(left_at(3, &path));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Database::open(&path, FRUIT).map(drop).expect("opened"));
        }
    });
    let database = Database::open(&path, FRUIT).expect("opened");
    assert_eq!(versions(&database.writer()), newest());
    assert_eq!(names(&database.writer(), "pear"), ["conference"]);
}

#[test]
fn a_database_restored_from_a_dump_is_recognised() {
    let (_root, path) = file();
    drop(Database::open(&path, FRUIT).expect("opened"));
    // A dump has the tables, and not `user_version`.
    Connection::open(&path).expect("a file").pragma_update(None, "user_version", 0).expect("written");
    let database = Database::open(&path, FRUIT).expect("opened again");
    assert_eq!(user_version(&database.writer()).expect("readable"), COUNTED_BY_CAPABILITY);
    assert_eq!(versions(&database.writer()), newest());
}

/// Opens a database of a newer Hob, and expects it to stay as it is.
fn refused(path: &Path) -> DatabaseError {
    let connection = Connection::open(path).expect("a file");
    let look = || (user_version(&connection).expect("readable"), schema(&connection));
    let before = look();
    let error = Database::open(path, FRUIT).err().expect("refused");
    assert_eq!(look(), before);
    error
}

#[test]
fn a_database_of_a_newer_hob_is_unchanged() {
    let (_root, path) = file();
    drop(Database::open(&path, FRUIT).expect("opened"));
    let connection = Connection::open(&path).expect("a file");
    connection.pragma_update(None, "user_version", 4711).expect("written");
    assert_eq!(
        refused(&path).to_string(),
        format!(
            "the database {} was written by a newer Hob: its version is 4711, and this Hob supports versions up to 11. \
             Update Hob, or set HOB_HOME to another directory.",
            path.display()
        )
    );
    connection.pragma_update(None, "user_version", COUNTED_BY_CAPABILITY).expect("written");
    connection
        .execute_batch("UPDATE schema_version SET version = 3 WHERE capability = 'pears'")
        .expect("written");
    // A capability of which there is a step to take does not take it.
    connection
        .execute_batch("UPDATE schema_version SET version = 3 WHERE capability = 'apples'")
        .expect("written");
    let before = versions(&connection);
    assert!(matches!(refused(&path), DatabaseError::Newer { found: 3, known: 2, .. }));
    assert_eq!(versions(&connection), before);
}

#[test]
fn an_old_database_with_unknown_steps_is_unchanged() {
    for found in [SINGLE_LIST + 1, COUNTED_BY_CAPABILITY - 1, COUNTED_BY_CAPABILITY, 4711, -1] {
        let (_root, path) = file();
        left_at(SINGLE_LIST, &path).pragma_update(None, "user_version", found).expect("written");
        let error = refused(&path);
        assert!(
            matches!(error, DatabaseError::Newer { found: told, known: SINGLE_LIST, .. } if told == found),
            "{error:?}"
        );
    }
}

#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let mut connection = Connection::open_in_memory().expect("opened");
    connection.execute_batch("CREATE TABLE plum (x)").expect("in the way of a step");
    assert!(migrate(&mut connection, FRUIT, Path::new("x.db")).is_err());
    assert_eq!(schema(&connection), ["CREATE TABLE plum (x)"]);
    assert_eq!(user_version(&connection).expect("readable"), 0);
}

#[test]
fn an_adoption_that_fails_leaves_the_database_as_it_was() {
    let (_root, path) = file();
    let connection = left_at(3, &path);
    connection.execute_batch("CREATE TABLE pear_anew (x)").expect("in the way of a step");
    let before = schema(&connection);
    assert!(Database::open(&path, FRUIT).is_err());
    assert_eq!((user_version(&connection).expect("readable"), schema(&connection)), (3, before));
    connection.execute_batch("DROP TABLE pear_anew").expect("out of the way");
    let database = Database::open(&path, FRUIT).expect("opened");
    assert_eq!(names(&database.writer(), "pear"), ["conference"]);
}
