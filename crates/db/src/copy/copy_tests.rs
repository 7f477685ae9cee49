use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hob_testkit::{PostgresServer, TestDatabase};
use rusqlite::params;

use super::*;
use crate::postgres::{PostgresDatabase, PostgresMigrations};
use crate::{Database, Migrations};

const FILE: &[Migrations] = &[Migrations {
    capability: "notes",
    steps: &["
        CREATE TABLE shelf (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
        CREATE TABLE note (
            shelf INTEGER NOT NULL REFERENCES shelf (id), name TEXT NOT NULL, done INTEGER NOT NULL, weight REAL, data BLOB,
            PRIMARY KEY (shelf, name)
        ) STRICT, WITHOUT ROWID"],
    legacy_versions: &[],
}];

const SERVER: &[PostgresMigrations] = &[PostgresMigrations {
    capability: "notes",
    steps: &["
        CREATE TABLE shelf (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE note (
            shelf BIGINT NOT NULL REFERENCES shelf (id), name TEXT NOT NULL, done BOOLEAN NOT NULL, weight DOUBLE PRECISION,
            data BYTEA, PRIMARY KEY (shelf, name)
        )"],
    usable_from: 0,
}];

const TABLES: &[CopyTable] = &[
    CopyTable::new("shelf", &["id"]),
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new("note", &["shelf", "name"]) },
];

/// Several batches.
const NOTES: i64 = 5_000;

struct Server {
    opened: PostgresDatabase,
    _database: TestDatabase,
}

fn server() -> Server {
    let database = PostgresServer::shared().create_database();
    let opened = PostgresDatabase::new(database.url().parse().expect("a URL"), SERVER).expect("opened");
    Server { opened, _database: database }
}

fn file() -> Database {
    Database::in_memory(FILE).expect("opened")
}

fn filled() -> Database {
    let file = file();
    let filled = file.write(|transaction| {
        transaction.execute("INSERT INTO shelf VALUES (3, 'oak'), (9, ?1)", ["U+0000: \0"])?;
        let mut insert = transaction.prepare("INSERT INTO note VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for number in 0..NOTES {
            let weight = (number % 3 > 0).then_some(number as f64 / 7.0);
            let data = (number % 2 > 0).then(|| number.to_le_bytes());
            insert.execute(params![3 + number % 2 * 6, format!("n\0{number}"), number % 2, weight, data])?;
        }
        Ok(())
    });
    filled.expect("written");
    file
}

type Note = (i64, String, bool, Option<f64>, Option<Vec<u8>>);

fn rows(file: &Database) -> Vec<Note> {
    let read = file.read(|connection| {
        let mut statement = connection.prepare("SELECT * FROM note ORDER BY shelf, name")?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
        rows.collect()
    });
    read.expect("read")
}

fn request(source: &'static str) -> CopyRequest<'static> {
    CopyRequest { tables: TABLES, source, existing: ExistingRows::Continue, listener: &|_| {} }
}

fn everything() -> Vec<(String, u64)> {
    vec![("shelf".to_owned(), 2), ("note".to_owned(), NOTES as u64)]
}

#[test]
fn all_kinds_of_values_survive_the_way_there_and_back() {
    let (source, server, back) = (filled(), server(), file());
    let report = copy_to_postgres(&source, &server.opened, &request("a file")).expect("copied");
    let expected = CopyReport { tables: everything(), copied: NOTES as u64 + 2, was_complete: false };
    assert_eq!(report, expected);
    assert_eq!(copy_to_sqlite(&server.opened, &back, &request("a server")).expect("copied"), expected);
    assert_eq!(rows(&back), rows(&source));
    let next: i64 = server
        .opened
        .write(|transaction| {
            let row = transaction.query_one("INSERT INTO shelf (name) VALUES ('new') RETURNING id", &[])?;
            Ok(row.try_get(0)?)
        })
        .expect("inserted");
    assert_eq!(next, 10, "new ids follow the copied ones");
}

#[test]
fn a_snapshot_may_wait_for_the_file_without_limit() {
    const LIMIT: &[CopyTable] = &[CopyTable {
        postgres: PostgresForm {
            prepare: None,
            expressions: &[("name", "current_setting('idle_in_transaction_session_timeout')")],
            after_batch: None,
            clear: None,
        },
        ..CopyTable::new("shelf", &["id"])
    }];
    let (server, back) = (server(), file());
    let written = server
        .opened
        .write(|transaction| transaction.execute("INSERT INTO shelf (name) VALUES ('the limit')", &[]));
    assert_eq!(written.expect("written"), 1);
    let request = CopyRequest { tables: LIMIT, ..request("a server") };
    copy_to_sqlite(&server.opened, &back, &request).expect("copied");
    let limit: String = back
        .read(|connection| connection.query_row("SELECT name FROM shelf", [], |row| row.get(0)))
        .expect("read");
    assert_eq!(limit, "0");
}

/// Stops the copy of the notes after the first batch.
fn stop_early(copy: impl FnOnce(&CopyRequest<'_>) -> Result<CopyReport, CopyError>) {
    let stop = |progress: &CopyProgress<'_>| {
        assert!(progress.table == "shelf" || progress.rows == 0, "stopped");
    };
    let stopped = catch_unwind(AssertUnwindSafe(|| copy(&CopyRequest { listener: &stop, ..request("one") })));
    assert!(stopped.is_err());
}

#[test]
fn a_stopped_copy_continues_where_it_was_and_a_complete_one_does_nothing() {
    let (source, server, back) = (filled(), server(), file());
    let first = RefCell::new(Vec::new());
    let listener = |progress: &CopyProgress<'_>| {
        if progress.table == "note" && progress.step == CopyStep::Copying {
            first.borrow_mut().push(progress.rows);
        }
    };
    stop_early(|request| copy_to_postgres(&source, &server.opened, request));
    let report =
        copy_to_postgres(&source, &server.opened, &CopyRequest { listener: &listener, ..request("one") });
    assert_eq!(report.expect("copied").copied, NOTES as u64 - 64);
    assert_eq!(first.take().first(), Some(&64));
    let again = copy_to_postgres(&source, &server.opened, &request("one")).expect("nothing to do");
    assert_eq!(again, CopyReport { was_complete: true, ..CopyReport::default() });

    stop_early(|request| copy_to_sqlite(&server.opened, &back, request));
    let report =
        copy_to_sqlite(&server.opened, &back, &CopyRequest { listener: &listener, ..request("one") });
    assert_eq!(report.expect("copied").copied, NOTES as u64 - 64);
    assert_eq!(first.take().first(), Some(&64));
    assert_eq!(rows(&back), rows(&source));
}

#[test]
fn a_copy_that_an_older_hob_began_continues_with_the_tables_that_it_does_not_know() {
    let (source, server) = (filled(), server());
    let stop = |progress: &CopyProgress<'_>| assert!(progress.step == CopyStep::Copying, "stopped");
    let old = CopyRequest { tables: &TABLES[..1], listener: &stop, ..request("one") };
    let stopped = catch_unwind(AssertUnwindSafe(|| copy_to_postgres(&source, &server.opened, &old)));
    assert!(stopped.is_err());
    let report = copy_to_postgres(&source, &server.opened, &request("one")).expect("copied");
    assert_eq!(report.copied, NOTES as u64);
}

#[test]
fn a_target_with_other_rows_is_left_alone() {
    let (source, server) = (filled(), server());
    copy_to_postgres(&source, &server.opened, &request("one")).expect("copied");
    for existing in [ExistingRows::Continue, ExistingRows::Restart] {
        let refused = copy_to_postgres(&source, &server.opened, &CopyRequest { existing, ..request("two") });
        assert!(matches!(refused, Err(CopyError::Occupied { table: "shelf", rows: 2, .. })), "{refused:?}");
    }
    let occupied = copy_to_sqlite(&server.opened, &source, &request("a server"));
    assert!(matches!(occupied, Err(CopyError::Occupied { .. })), "{occupied:?}");
    let replaced = copy_to_postgres(
        &source,
        &server.opened,
        &CopyRequest { existing: ExistingRows::Delete, ..request("two") },
    );
    assert_eq!(replaced.expect("copied").tables, everything());
}

#[test]
fn an_unfinished_copy_of_another_source_is_begun_again_on_request_only() {
    let (source, server) = (filled(), server());
    stop_early(|request| copy_to_postgres(&source, &server.opened, request));
    let refused = copy_to_postgres(&source, &server.opened, &request("two"));
    assert!(matches!(refused, Err(CopyError::OtherSource { .. })), "{refused:?}");
    let restarted = copy_to_postgres(
        &source,
        &server.opened,
        &CopyRequest { existing: ExistingRows::Restart, ..request("two") },
    );
    assert_eq!(restarted.expect("copied").copied, NOTES as u64 + 2);
}

#[test]
fn a_copy_that_replaces_another_one_in_progress_ends_that_one() {
    let (source, server, back) = (filled(), server(), file());
    let other = file();
    other
        .write(|transaction| transaction.execute("INSERT INTO shelf VALUES (4, 'ash')", []))
        .expect("written");
    // At the beginning of a table, between two steps of it, before the target is compared, and after that.
    let moments = [
        (CopyStep::Copying, 0, 0),
        (CopyStep::Copying, 64, 0),
        (CopyStep::Comparing, NOTES as u64, 0),
        (CopyStep::Comparing, NOTES as u64, 1),
    ];
    // The second of the same name may have other rows: a file changes.
    let seconds = [("another", ExistingRows::Delete), ("first", ExistingRows::Restart)];
    for ((step, from, skipped), (name, existing)) in
        moments.into_iter().flat_map(|moment| seconds.map(|second| (moment, second)))
    {
        let seen = Cell::new(0);
        let begin_another = |progress: &CopyProgress<'_>| {
            let is_here = progress.table == "note" && progress.step == step && progress.rows >= from;
            if is_here && seen.replace(seen.get() + 1) == skipped {
                let another = CopyRequest { existing, ..request(name) };
                copy_to_postgres(&other, &server.opened, &another).expect("it replaces the first");
            }
        };
        let first =
            CopyRequest { existing: ExistingRows::Delete, listener: &begin_another, ..request("first") };
        let ended = copy_to_postgres(&source, &server.opened, &first);
        assert!(
            matches!(ended, Err(CopyError::Concurrent { .. } | CopyError::Differs { .. })),
            "{step:?} {from} {skipped} {name}: {ended:?}"
        );
        let again = copy_to_postgres(&other, &server.opened, &request(name)).expect("nothing to do");
        assert!(again.was_complete, "{step:?} {from} {skipped} {name}");
        let shelves = server.opened.read(|transaction| {
            let row =
                transaction.query_one("SELECT count(*), (SELECT count(*) FROM note) FROM shelf", &[])?;
            Ok((row.try_get::<_, i64>(0)?, row.try_get::<_, i64>(1)?))
        });
        assert_eq!(
            shelves.expect("read"),
            (1, 0),
            "{step:?} {from} {skipped} {name}: only what the second copied"
        );
    }
    copy_to_sqlite(&server.opened, &back, &request("a server")).expect("copied");
    assert_eq!(rows(&back), []);
}

#[test]
fn a_source_that_changed_after_a_stop_is_noticed() {
    let (source, server) = (filled(), server());
    stop_early(|request| copy_to_postgres(&source, &server.opened, request));
    // In the first batch, which is not read again.
    let changed = source.write(|transaction| {
        transaction.execute("UPDATE note SET weight = -1 WHERE (shelf, name) = (SELECT shelf, name FROM note ORDER BY shelf, name LIMIT 1)", [])
    });
    assert_eq!(changed.expect("written"), 1);
    let noticed = copy_to_postgres(&source, &server.opened, &request("one"));
    assert!(matches!(noticed, Err(CopyError::Differs { table: "note", .. })), "{noticed:?}");
    let restarted = copy_to_postgres(
        &source,
        &server.opened,
        &CopyRequest { existing: ExistingRows::Restart, ..request("one") },
    );
    assert_eq!(restarted.expect("copied").tables, everything());
}

#[test]
fn a_target_that_has_rows_in_a_later_table_is_refused_every_time() {
    let (source, server) = (filled(), server());
    copy_to_postgres(&source, &server.opened, &request("one")).expect("copied");
    let target = file();
    target
        .write(|transaction| transaction.execute("INSERT INTO shelf VALUES (1, 'x')", []))
        .expect("written");
    let tables = [TABLES[1], TABLES[0]];
    for _ in 0..2 {
        let request = CopyRequest { tables: &tables, ..request("a server") };
        let refused = copy_to_sqlite(&server.opened, &target, &request);
        assert!(matches!(refused, Err(CopyError::Occupied { table: "shelf", .. })), "{refused:?}");
    }
    assert_eq!(rows(&target), []);
}
