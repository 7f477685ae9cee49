//! Migrations on a real server: run once, by one of many processes, and used by older programs.

use std::thread;
use std::time::Instant;

use hob_testkit::PostgresServer;

use super::tests::{MIGRATIONS, at, database, insert, options, texts};
use super::*;

#[test]
fn many_processes_migrate_once() {
    static STEPS: &[PostgresMigrations] = &[PostgresMigrations {
        capability: "notes",
        steps: &["CREATE TABLE note (id BIGINT)", "INSERT INTO note VALUES (1)"],
        usable_from: 0,
    }];
    let test = PostgresServer::shared().create_database();
    let holder = PostgresDatabase::new(options(&test.url()), &[]).expect("made");
    thread::scope(|scope| {
        let held = holder.write(|transaction| {
            transaction.lock("hob.migrations")?;
            for _ in 0..6 {
                scope.spawn(|| {
                    let database = PostgresDatabase::new(options(&test.url()), STEPS).expect("made");
                    database.migrate().expect("migrated");
                });
            }
            // All of them have seen a database without tables, and wait to create them.
            let waiting = "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database
                WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted";
            let deadline = Instant::now() + Duration::from_secs(60);
            while transaction.query_one(waiting, &[])?.try_get::<_, i64>(0)? < 6 {
                assert!(Instant::now() < deadline, "they do not wait");
            }
            Ok(())
        });
        held.expect("held");
    });
    let database = PostgresDatabase::new(options(&test.url()), STEPS).expect("made");
    let count: i64 = database
        .read(|transaction| Ok(transaction.query_one("SELECT count(*) FROM note", &[])?.try_get(0)?))
        .expect("read");
    assert_eq!(count, 1);
}

#[test]
fn an_older_hob_uses_a_newer_schema_unless_that_one_forbids_it() {
    const ADDED: &[PostgresMigrations] = &[PostgresMigrations {
        capability: "notes",
        steps: &[MIGRATIONS[0].steps[0], "ALTER TABLE note ADD COLUMN colour TEXT"],
        usable_from: 0,
    }];
    const BROKEN: &[PostgresMigrations] = &[PostgresMigrations {
        capability: "notes",
        steps: &[ADDED[0].steps[0], ADDED[0].steps[1], "ALTER TABLE note DROP COLUMN text"],
        usable_from: 3,
    }];
    let (database, test) = database();
    insert(&database, 1, "old").expect("written");
    let newer = PostgresDatabase::new(options(&test.url()), ADDED).expect("made");
    newer.migrate().expect("migrated");
    insert(&at(&test.url()), 2, "old, started again").expect("written");
    assert_eq!(texts(&newer).expect("read").len(), 2);

    PostgresDatabase::new(options(&test.url()), BROKEN).expect("made").migrate().expect("migrated");
    let refused = at(&test.url()).migrate().expect_err("refused");
    assert_eq!(
        refused.to_string(),
        format!(
            "the database at {} was changed by a newer Hob: its version is 3, and this Hob supports versions up to 1. Update Hob, or \
             use another database.",
            options(&test.url()).server()
        )
    );
}

#[test]
fn a_migration_that_fails_changes_nothing_and_is_tried_again() {
    const BAD: &[PostgresMigrations] = &[PostgresMigrations {
        capability: "notes",
        steps: &["CREATE TABLE note (id BIGINT)", "INSERT INTO missing VALUES (1)"],
        usable_from: 0,
    }];
    let test = PostgresServer::shared().create_database();
    let database = PostgresDatabase::new(options(&test.url()), BAD).expect("made");
    for _ in 0..2 {
        let error = database.migrate().expect_err("a bad step");
        assert!(error.to_string().contains("relation \"missing\" does not exist"), "{error}");
    }
    assert_eq!(texts(&at(&test.url())).expect("the table of the other list"), [""; 0]);
}

#[test]
fn a_look_migrates_nothing_and_finds_no_table_before_the_first_use() {
    let (database, test) = database();
    let count = |database: &PostgresDatabase| {
        database.peek("note", |transaction| {
            Ok(transaction.query_one("SELECT count(*) FROM note", &[])?.try_get::<_, i64>(0)?)
        })
    };
    for _ in 0..2 {
        assert_eq!(count(&database).expect("looked"), None);
        assert_eq!(database.inspect().expect("inspected").steps_behind, 1);
    }
    insert(&database, 1, "first").expect("written");
    assert_eq!(count(&at(&test.url())).expect("looked"), Some(1));
}
