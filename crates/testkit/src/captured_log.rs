//! The log of a test: of its thread, or of its whole process.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hob_core::with_request_id;
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::util::SubscriberInitExt;

/// What was logged, with the ids of requests, as `hob serve` writes it.
#[derive(Clone, Default)]
pub struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// What this thread logs until the guard is dropped.
    pub fn of_thread() -> (Self, DefaultGuard) {
        let log = CapturedLog::default();
        let writer = log.clone();
        let format = tracing_subscriber::fmt().compact().with_ansi(false);
        let guard = format.with_writer(move || writer.clone()).finish().set_default();
        (log, guard)
    }

    /// What all threads log, at the default level of `hob serve`.
    pub fn of_process() -> &'static Self {
        static LOG: OnceLock<CapturedLog> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = CapturedLog::default();
            let writer = log.clone();
            let format = tracing_subscriber::fmt().compact().with_ansi(false).with_max_level(Level::WARN);
            format.with_writer(move || writer.clone()).init();
            log
        })
    }

    /// The lines that contain these words.
    pub fn lines(&self, words: &str) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&with_request_id(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
