use std::sync::mpsc;

use hob_sync::MutexGuard;

use super::*;
use crate::DatabaseError;

/// Longer than any of these tests takes on a busy machine; none of them waits for it to pass.
const LONG: Duration = Duration::from_secs(60);

const OPTIONS: BatchOptions = BatchOptions {
    thread: "test",
    capacity: 100,
    batch: 10,
    gather: Duration::from_millis(20),
    dropped: "entries are dropped",
};

/// Keeps what is written, and fails while `is_failing`.
#[derive(Clone, Default)]
struct Sink {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Default)]
struct Disk {
    batches: Vec<Vec<u32>>,
    is_failing: bool,
}

impl Sink {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock()
    }

    fn entries(&self) -> Vec<u32> {
        self.disk().batches.concat()
    }
}

impl BatchSink<u32> for Sink {
    fn write(&mut self, batch: &[u32]) -> Result<(), DatabaseError> {
        let mut disk = self.disk();
        if disk.is_failing {
            return Err(failure());
        }
        disk.batches.push(batch.to_vec());
        Ok(())
    }
}

fn failure() -> DatabaseError {
    let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
    DatabaseError::explain(std::path::Path::new("x.db"), rusqlite::Error::SqliteFailure(full, None))
}

fn started() -> (BatchWriter<u32>, Sink) {
    let sink = Sink::default();
    (BatchWriter::start(OPTIONS, sink.clone()).expect("started"), sink)
}

#[test]
fn entries_are_written_in_order_in_batches_of_limited_size() {
    let (writer, sink) = started();
    assert!(writer.flush(LONG), "nothing to write");
    (0..95).for_each(|entry| writer.add(entry));
    assert!(writer.flush(LONG));
    assert_eq!(sink.entries(), (0..95).collect::<Vec<u32>>());
    assert!(sink.disk().batches.iter().all(|batch| batch.len() <= OPTIONS.batch));
}

#[test]
fn entries_are_written_without_a_flush() {
    let (writer, sink) = started();
    writer.add(1);
    writer.shared.progress.wait_while_for(&mut writer.shared.state.lock(), |state| state.written == 0, LONG);
    assert_eq!(sink.entries(), [1]);
}

#[test]
fn dropping_the_writer_writes_what_waits() {
    let (writer, sink) = started();
    (0..70).for_each(|entry| writer.add(entry));
    drop(writer);
    assert_eq!(sink.entries().len(), 70);
}

#[test]
fn concurrent_callers_lose_nothing() {
    let (writer, sink) = started();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for entry in 0..500 {
                    writer.add(entry);
                    writer.flush(LONG);
                }
            });
        }
    });
    drop(writer);
    assert_eq!(sink.entries().len(), 4000);
}

#[test]
fn a_full_queue_blocks_no_caller_and_counts_what_it_drops() {
    let (writer, sink) = started();
    let busy = sink.disk();
    let sent = 200;
    (0..sent).for_each(|entry| writer.add(entry));
    assert!(writer.shared.state.lock().queue.len() <= OPTIONS.capacity);
    assert!(writer.dropped() >= 90, "{}", writer.dropped());
    assert!(!writer.flush(Duration::ZERO));
    drop(busy);
    assert!(writer.flush(LONG));
    assert_eq!(sink.entries().len() as u64 + writer.dropped(), u64::from(sent));
}

#[test]
fn a_failed_batch_is_written_once_the_disk_works_again() {
    let (writer, sink) = started();
    sink.disk().is_failing = true;
    (0..60).for_each(|entry| writer.add(entry));
    assert!(!writer.flush(LONG));
    sink.disk().is_failing = false;
    // An attempt that began before may still fail.
    assert!((0..100).any(|_| writer.flush(LONG)));
    assert_eq!((sink.entries().len(), writer.dropped()), (60, 0));
}

#[test]
fn closing_counts_what_the_disk_did_not_take() {
    let (writer, sink) = started();
    writer.add(0);
    assert!(writer.flush(LONG));
    sink.disk().is_failing = true;
    (0..60).for_each(|entry| writer.add(entry));
    assert_eq!(writer.close(), 60);
    assert_eq!((writer.dropped(), sink.entries().len()), (60, 1));
    writer.add(0);
    assert_eq!(writer.dropped(), 61);
    assert_eq!(writer.close(), 0, "it is closed already");
}

#[test]
fn a_thread_that_panics_blocks_no_caller() {
    struct Panics;
    impl BatchSink<u32> for Panics {
        fn write(&mut self, _batch: &[u32]) -> Result<(), DatabaseError> {
            panic!("on purpose");
        }
    }
    let writer = BatchWriter::start(OPTIONS, Panics).expect("started");
    writer.add(1);
    assert!(!writer.flush(LONG));
    writer.add(2);
    assert_eq!((writer.close(), writer.dropped()), (1, 2));
}

#[test]
fn maintenance_runs_while_there_is_nothing_to_write() {
    struct Ticks(mpsc::Sender<()>);
    impl BatchSink<u32> for Ticks {
        fn write(&mut self, _batch: &[u32]) -> Result<(), DatabaseError> {
            Ok(())
        }

        fn maintain(&mut self) -> Duration {
            // The test may have ended.
            let _ = self.0.send(());
            Duration::from_millis(1)
        }
    }
    let (sender, ticks) = mpsc::channel();
    let _writer = BatchWriter::start(OPTIONS, Ticks(sender)).expect("started");
    for _ in 0..3 {
        ticks.recv_timeout(LONG).expect("another call");
    }
}

#[test]
fn dropped_entries_are_logged_once_a_minute() {
    let (mut last, start) = (None, Instant::now());
    let due =
        [0, 1, 59, 60, 61, 119, 120].map(|second| is_log_due(&mut last, start + Duration::from_secs(second)));
    assert_eq!(due, [true, false, false, true, false, false, true]);
}

#[test]
fn a_failing_disk_is_logged_once_and_its_recovery_once() {
    let mut log = FailureLog::new("failed", "recovered");
    let changes = [true, false, false, true, true, false].map(|is_ok| log.change(is_ok));
    assert_eq!(changes, [None, Some("failed"), None, Some("recovered"), None, Some("failed")]);
}
