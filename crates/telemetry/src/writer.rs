//! Records calls in the store from its own thread: writes at least five times a second, syncs to the disk once a second, deletes
//! old records, and opens a database that could not be opened before.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hob_db::{BatchOptions, BatchSink, BatchWriter, DbResult, FailureLog};
use tracing::{debug, warn};

use crate::entry::shorten;
use crate::inference::{Inference, InferenceLog};
use crate::retention::{Pruning, Retention};
use crate::savings::Prices;
use crate::store::TelemetryStore;

const BATCHES: BatchOptions = BatchOptions {
    thread: "telemetry",
    capacity: 8192,
    batch: 2048,
    gather: Duration::from_millis(200),
    dropped: "calls cannot be written to the database in time; some are not recorded. 'hob doctor' checks \
              the database",
};

/// How long records may be with the operating system alone.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How often Hob tries to open the database again while no record waits.
const REOPEN_INTERVAL: Duration = Duration::from_secs(60);

/// How often the date is checked while there is nothing to write: records of another day may be too old.
const DATE_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Records calls. Dropping it writes the records that wait.
pub struct TelemetryWriter {
    batches: BatchWriter<Inference>,
}

/// How calls are recorded.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The prices of cloud calls.
    pub prices: Arc<Prices>,
    /// Days that records are kept; 0 is forever.
    pub retention_days: u32,
}

impl TelemetryWriter {
    /// Starts the thread; an error means that the system refused to start one. `open` is called until it succeeds.
    pub fn start(
        open: impl FnMut() -> DbResult<Arc<dyn TelemetryStore>> + Send + 'static,
        options: WriterOptions,
    ) -> io::Result<Self> {
        let sink = TelemetrySink {
            open: Box::new(open),
            store: None,
            prices: options.prices,
            retention: Retention::new(options.retention_days),
            unsynced: Unsynced::default(),
            log: FailureLog::new(
                "calls are not recorded; Hob continues to answer, and keeps trying",
                "calls are recorded again",
            ),
        };
        Ok(TelemetryWriter { batches: BatchWriter::start(BATCHES, sink)? })
    }

    /// The number of lost records.
    pub fn dropped(&self) -> u64 {
        self.batches.dropped()
    }

    /// Waits until all records so far are written, and returns whether they are. See [`BatchWriter::flush`].
    pub fn flush(&self, timeout: Duration) -> bool {
        self.batches.flush(timeout)
    }

    /// Writes the records that wait, and accepts no more. Returns the number of records that could not be written.
    pub fn close(&self) -> u64 {
        let unsaved = self.batches.close();
        if unsaved > 0 {
            warn!(
                unsaved,
                "the last calls are not recorded: the database could not be written in time. 'hob doctor' \
                 checks the database"
            );
        }
        unsaved
    }
}

impl InferenceLog for TelemetryWriter {
    fn record(&self, mut inference: Inference) {
        shorten(&mut inference);
        self.batches.add(inference);
    }
}

struct TelemetrySink {
    open: Box<dyn FnMut() -> DbResult<Arc<dyn TelemetryStore>> + Send>,
    store: Option<Arc<dyn TelemetryStore>>,
    prices: Arc<Prices>,
    retention: Retention,
    unsynced: Unsynced,
    log: FailureLog,
}

impl TelemetrySink {
    fn store(&mut self) -> DbResult<Arc<dyn TelemetryStore>> {
        if let Some(store) = &self.store {
            return Ok(Arc::clone(store));
        }
        let store = (self.open)()?;
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }
}

impl BatchSink<Inference> for TelemetrySink {
    fn write(&mut self, batch: &[Inference]) -> DbResult<()> {
        let result = self.store().and_then(|store| store.record_batch(batch, &self.prices));
        self.log.note(&result);
        if result.is_ok() {
            self.unsynced.note_written(Instant::now());
        }
        result
    }

    fn maintain(&mut self) -> Duration {
        let Ok(store) = self.store() else { return REOPEN_INTERVAL };
        let timeout = match self.retention.step(store.as_ref(), SystemTime::now(), Instant::now()) {
            Pruning::Continues => Duration::ZERO,
            Pruning::Rests => DATE_INTERVAL,
        };
        if self.unsynced.is_due(Instant::now()) {
            self.unsynced.sync(store.as_ref());
        }
        timeout.min(self.unsynced.left(Instant::now()))
    }

    fn finish(&mut self) {
        if let Some(store) = &self.store {
            self.unsynced.sync(store.as_ref());
        }
    }
}

/// Since when there are records that a power cut would lose.
#[derive(Default)]
struct Unsynced {
    since: Option<Instant>,
}

impl Unsynced {
    fn note_written(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.left(now).is_zero()
    }

    fn left(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::MAX, |since| (since + SYNC_INTERVAL).saturating_duration_since(now))
    }

    fn sync(&mut self, store: &dyn TelemetryStore) {
        if self.since.take().is_some()
            && let Err(error) = store.sync()
        {
            debug!(error = &error as &dyn Error, "records are not on the disk yet; trying again");
            self.note_written(Instant::now());
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
