//! The log of a test.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::util::SubscriberInitExt;

/// What this thread logs until this is dropped.
pub struct CapturedLog {
    text: LogText,
    _guard: DefaultGuard,
}

impl CapturedLog {
    pub fn start() -> Self {
        let text = LogText::default();
        let writer = text.clone();
        let format = tracing_subscriber::fmt().compact().with_ansi(false);
        let guard = format.with_writer(move || writer.clone()).finish().set_default();
        CapturedLog { text, _guard: guard }
    }

    /// The lines that contain these words.
    pub fn lines(&self, words: &str) -> Vec<String> {
        let bytes = self.text.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

#[derive(Clone, Default)]
struct LogText(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
