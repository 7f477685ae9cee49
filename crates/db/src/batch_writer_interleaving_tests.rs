//! Threads that add, flush and close at the same time, in many orders: every entry is written once or counted as lost.

use std::sync::Mutex as Disk;

use hob_sync::explore;

use super::*;
use crate::DatabaseError;

/// So long that it never ends here; see `hob_sync`.
const LONG: Duration = Duration::from_secs(60);

const OPTIONS: BatchOptions = BatchOptions {
    thread: "test",
    capacity: 3,
    batch: 2,
    gather: Duration::from_millis(20),
    dropped: "entries are dropped",
};

/// Keeps what is written, after some failures.
#[derive(Clone, Default)]
struct Sink {
    written: Arc<Disk<Vec<u32>>>,
    failures: u32,
}

impl Sink {
    fn entries(&self) -> Vec<u32> {
        self.written.lock().expect("no panic").clone()
    }
}

impl BatchSink<u32> for Sink {
    fn write(&mut self, batch: &[u32]) -> Result<(), DatabaseError> {
        assert!((1..=OPTIONS.batch).contains(&batch.len()), "a batch has at most this size");
        if let Some(left) = self.failures.checked_sub(1) {
            self.failures = left;
            let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
            let full = rusqlite::Error::SqliteFailure(full, None);
            return Err(DatabaseError::explain(std::path::Path::new("x.db"), full));
        }
        self.written.lock().expect("no panic").extend_from_slice(batch);
        Ok(())
    }
}

fn started(capacity: usize, failures: u32) -> (Arc<BatchWriter<u32>>, Sink) {
    let sink = Sink { failures, ..Sink::default() };
    let options = BatchOptions { capacity, ..OPTIONS };
    (Arc::new(BatchWriter::start(options, sink.clone()).expect("started")), sink)
}

/// Two threads that add two entries each, such as 10 and 11.
fn adders(writer: &Arc<BatchWriter<u32>>) -> Vec<JoinHandle<()>> {
    let add = |number: u32| {
        let writer = Arc::clone(writer);
        thread::spawn(move || (0..2).for_each(|entry| writer.add(number * 10 + entry)))
    };
    (1..=2).map(add).collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// The entries of each thread are in order, and none is there twice.
fn assert_in_order(entries: &[u32]) {
    for number in 1..=2 {
        let own: Vec<u32> = entries.iter().copied().filter(|entry| entry / 10 == number).collect();
        assert!(own.is_sorted_by(|one, next| one < next), "{entries:?}");
    }
}

#[test]
fn every_entry_is_written_once_or_counted_as_dropped() {
    explore(|| {
        let (writer, sink) = started(OPTIONS.capacity, 0);
        let threads = adders(&writer);
        assert!(writer.flush(LONG), "the sink works");
        join(threads);
        assert_eq!(writer.close(), 0, "the sink works");
        assert_in_order(&sink.entries());
        assert_eq!(sink.entries().len() as u64 + writer.dropped(), 4);
    });
}

#[test]
fn what_was_added_before_a_flush_is_written_after_it() {
    explore(|| {
        let (writer, sink) = started(100, 0);
        let threads = adders(&writer);
        writer.add(7);
        assert!(writer.flush(LONG), "the sink works");
        assert!(sink.entries().contains(&7));
        join(threads);
        drop(writer);
        assert_eq!(sink.entries().len(), 5, "dropping the writer writes what waits");
    });
}

#[test]
fn a_sink_that_fails_loses_only_what_is_counted() {
    explore(|| {
        let (writer, sink) = started(OPTIONS.capacity, 2);
        let threads = adders(&writer);
        writer.flush(LONG);
        join(threads);
        let dropped_before = writer.dropped();
        let lost = writer.close();
        assert_in_order(&sink.entries());
        assert_eq!(sink.entries().len() as u64 + writer.dropped(), 4);
        assert!(writer.dropped() >= dropped_before + lost, "what could not be written counts as dropped");
    });
}

#[test]
fn a_writer_that_is_closed_twice_while_entries_arrive_loses_only_what_is_counted() {
    explore(|| {
        let (writer, sink) = started(OPTIONS.capacity, 1);
        let mut threads = adders(&writer);
        for _ in 0..2 {
            let writer = Arc::clone(&writer);
            threads.push(thread::spawn(move || _ = writer.close()));
        }
        join(threads);
        assert_in_order(&sink.entries());
        assert_eq!(sink.entries().len() as u64 + writer.dropped(), 4);
    });
}
