//! The writer when all is well, and when the disk fails.

use std::thread;

use hob_core::FinishReason;
use hob_db::{Database, DatabaseError};

use super::*;
use crate::inference::InferenceEnd;
use crate::store::tests::{DAY, NewStore, inference, postgres, sqlite};
use crate::store::{MIGRATIONS, SqliteTelemetryStore};

hob_testkit::on_both_databases!(
    sqlite, postgres:
    records_are_on_disk_after_a_flush,
    old_records_are_deleted_by_the_writer_thread,
);

/// Longer than any of these tests takes on a busy machine; none of them waits for it to pass.
const LONG: Duration = Duration::from_secs(60);

fn keeping(retention_days: u32) -> WriterOptions {
    WriterOptions { prices: Arc::new(Prices::standard()), retention_days }
}

fn started(telemetry: &SqliteTelemetryStore, retention_days: u32) -> TelemetryWriter {
    writes_to(Arc::new(telemetry.clone()), retention_days)
}

fn writes_to(store: Arc<dyn TelemetryStore>, retention_days: u32) -> TelemetryWriter {
    TelemetryWriter::start(move || Ok(Arc::clone(&store)), keeping(retention_days)).expect("started")
}

fn in_memory() -> (Database, SqliteTelemetryStore) {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    (database.clone(), SqliteTelemetryStore::new(database))
}

fn calls(telemetry: &dyn TelemetryStore) -> u64 {
    telemetry.overview(None).expect("readable").figures.calls
}

/// While this is set, the database takes no writes.
fn refuse_writes(database: &Database, refuse: bool) {
    database.writer().pragma_update(None, "query_only", refuse).expect("set");
}

fn flush_in_the_end(writer: &TelemetryWriter) {
    // An attempt that began before the disk was mended may fail yet.
    assert!((0..100).any(|_| writer.flush(LONG)), "it never wrote");
}

fn records_are_on_disk_after_a_flush(new: NewStore) {
    let telemetry = new();
    let writer = writes_to(Arc::clone(&telemetry.store), 0);
    assert!(writer.flush(LONG), "nothing to do");
    for _ in 0..1500 {
        writer.record(inference());
    }
    assert!(writer.flush(LONG));
    assert_eq!((calls(&*telemetry), writer.dropped()), (1500, 0));
}

fn old_records_are_deleted_by_the_writer_thread(new: NewStore) {
    let telemetry = new();
    let ago = |days: u32| Inference { started: SystemTime::now() - days * DAY, ..inference() };
    telemetry.record_batch(&[ago(40), ago(3)], &Prices::standard()).expect("recorded");
    let writer = writes_to(Arc::clone(&telemetry.store), 30);
    writer.record(ago(0));
    assert!(writer.flush(LONG));
    assert_eq!(calls(&*telemetry), 2);
}

#[test]
fn old_records_that_cannot_be_deleted_do_not_block_new_ones() {
    let (database, telemetry) = in_memory();
    telemetry
        .record_batch(&[Inference { started: SystemTime::UNIX_EPOCH, ..inference() }], &Prices::standard())
        .expect("recorded");
    let refuses =
        "CREATE TRIGGER refuses BEFORE DELETE ON telemetry_page BEGIN SELECT raise(FAIL, 'no'); END";
    database.writer().execute_batch(refuses).expect("set");
    let writer = started(&telemetry, 30);
    writer.record(inference());
    assert!(writer.flush(LONG));
    assert_eq!(calls(&telemetry), 2);
}

#[test]
fn a_failing_disk_loses_nothing_once_it_works_again() {
    let (database, telemetry) = in_memory();
    let writer = started(&telemetry, 0);
    refuse_writes(&database, true);
    for _ in 0..600 {
        writer.record(inference());
    }
    assert!(!writer.flush(LONG), "it cannot have been written");
    refuse_writes(&database, false);
    flush_in_the_end(&writer);
    assert_eq!((calls(&telemetry), writer.dropped()), (600, 0));
}

#[test]
fn records_lost_on_a_full_disk_are_counted_at_the_end() {
    let (database, telemetry) = in_memory();
    let writer = started(&telemetry, 0);
    for _ in 0..10 {
        writer.record(inference());
    }
    assert!(writer.flush(LONG));
    let pages: i64 =
        database.writer().pragma_query_value(None, "page_count", |row| row.get(0)).expect("counted");
    database.writer().pragma_update(None, "max_page_count", pages).expect("set");
    for _ in 0..3000 {
        writer.record(inference());
    }
    // On a busy machine the first batches may be small, and fit into the last page.
    let lost = writer.close();
    assert!(lost > 0, "the disk is full");
    assert_eq!((writer.dropped(), calls(&telemetry)), (lost, 3010 - lost));
    writer.record(inference());
    assert_eq!(writer.dropped(), lost + 1, "the writer is closed");
    assert_eq!(writer.close(), 0, "it is closed already");
}

#[test]
fn a_database_that_can_be_opened_later_gets_what_was_recorded_meanwhile() {
    let (_, telemetry) = in_memory();
    let opened: Arc<dyn TelemetryStore> = Arc::new(telemetry.clone());
    let mut refusals = 3;
    let open = move || {
        refusals -= 1;
        if refusals < 0 { Ok(Arc::clone(&opened)) } else { Err(locked()) }
    };
    let writer = TelemetryWriter::start(open, keeping(0)).expect("started");
    for _ in 0..500 {
        writer.record(inference());
    }
    flush_in_the_end(&writer);
    assert_eq!((calls(&telemetry), writer.dropped()), (500, 0));
}

#[test]
fn a_database_that_can_never_be_opened_costs_a_bounded_queue_and_is_counted() {
    let writer = TelemetryWriter::start(|| Err(locked()), keeping(0)).expect("started");
    let most = (BATCHES.capacity + BATCHES.batch) as u64;
    for _ in 0..most + 500 {
        writer.record(inference());
    }
    assert!(writer.dropped() >= 500);
    assert!(!writer.flush(LONG), "it cannot have been written");
    assert!(writer.close() <= most);
    assert_eq!(writer.dropped(), most + 500);
}

fn locked() -> DatabaseError {
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    DatabaseError::explain(std::path::Path::new("hob.db"), rusqlite::Error::SqliteFailure(busy, None))
}

#[test]
fn a_record_is_on_the_disk_within_about_a_second() {
    let root = tempfile::tempdir().expect("a directory");
    let database = Database::open(&root.path().join("hob.db"), &[MIGRATIONS]).expect("opened");
    let telemetry = SqliteTelemetryStore::new(database.clone());
    let writer = started(&telemetry, 0);
    writer.record(inference());
    assert!(writer.flush(LONG));
    let synchronous = || -> i64 {
        database.writer().pragma_query_value(None, "synchronous", |row| row.get(0)).expect("set")
    };
    let deadline = Instant::now() + LONG;
    // The last write of this connection is then the one that syncs.
    while synchronous() < 2 {
        assert!(Instant::now() < deadline, "it never reaches the disk");
        thread::yield_now();
    }
}

#[test]
fn records_are_synced_once_a_second() {
    let (mut unsynced, start) = (Unsynced::default(), Instant::now());
    assert!(!unsynced.is_due(start));
    unsynced.note_written(start);
    unsynced.note_written(start + Duration::from_millis(900));
    assert_eq!(unsynced.left(start + Duration::from_millis(900)), Duration::from_millis(100));
    assert!(unsynced.is_due(start + Duration::from_secs(1)));
    let (_, telemetry) = in_memory();
    unsynced.sync(&telemetry);
    assert!(!unsynced.is_due(start + LONG));
}

#[test]
fn long_names_are_shortened_in_the_queue() {
    let mut endless = inference();
    endless.model = "é".repeat(1_000_000);
    endless.agent = Some("x".repeat(1_000_000));
    endless.ending = InferenceEnd::Failed("x".repeat(1_000_000));
    shorten(&mut endless);
    assert_eq!(endless.model, "é".repeat(128));
    assert!(endless.model.capacity() < 1000);
    assert_eq!(endless.agent.as_ref().map(String::len), Some(256));
    assert_eq!(endless.ending, InferenceEnd::Failed("x".repeat(2000)));
    endless.ending = InferenceEnd::Complete(FinishReason::Other("x".repeat(1_000_000)));
    shorten(&mut endless);
    assert_eq!(endless.ending, InferenceEnd::Complete(FinishReason::Other("x".repeat(256))));
}
