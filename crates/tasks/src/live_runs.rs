//! The runs of this process that are active, whatever their leases say: while the database is away, no lease is renewed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The active runs, each with the time of the last renewal of its lease.
#[derive(Default)]
pub(crate) struct LiveRuns(Mutex<HashMap<i64, Instant>>);

impl LiveRuns {
    /// Registers a run whose lease has just begun.
    pub(crate) fn begin(&self, run: i64) -> LiveRun<'_> {
        self.0.lock().insert(run, Instant::now());
        LiveRun { runs: self, run }
    }

    pub(crate) fn note_renewal(&self, run: i64) {
        if let Some(renewed) = self.0.lock().get_mut(&run) {
            *renewed = Instant::now();
        }
    }

    /// The runs whose lease was not renewed for `age`.
    pub(crate) fn not_renewed_for(&self, age: Duration) -> Vec<i64> {
        self.0.lock().iter().filter(|(_, renewed)| renewed.elapsed() >= age).map(|(run, _)| *run).collect()
    }
}

/// A registered run, until this is dropped.
pub(crate) struct LiveRun<'a> {
    runs: &'a LiveRuns,
    run: i64,
}

impl Drop for LiveRun<'_> {
    fn drop(&mut self) {
        self.runs.0.lock().remove(&self.run);
    }
}
