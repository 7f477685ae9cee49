//! Writes into the book from a thread of its own, so that no answer waits for the disk. What finds the queue full is let go: a
//! lesson that is missed harms nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use hob_agent::routing::reward::RunEnd;
use hob_core::routing::Decision;
use hob_store::StoreError;

use super::book::Shelf;

/// Entries that may wait.
const CAPACITY: usize = 1024;

/// What is to be written.
pub(super) enum Entry {
    Decided(Box<Decision>),
    Ended {
        run: Arc<str>,
        end: RunEnd,
    },
    /// Another model has answered.
    Withdrawn(Arc<str>),
    /// Nothing: it is time to read again.
    Read,
    /// Everything before this is written when the sender hears of it.
    Flush(SyncSender<()>),
}

/// The thread, as those see it who have something to write. It ends when the last of them is gone.
pub(super) struct Writer {
    entries: SyncSender<Entry>,
    /// Whether it was said that entries are let go.
    told: AtomicBool,
}

impl Writer {
    pub(super) fn start(shelf: Arc<Shelf>) -> std::io::Result<Self> {
        let (entries, waiting) = sync_channel(CAPACITY);
        thread::Builder::new().name("router".to_owned()).spawn(move || write_all(&shelf, &waiting))?;
        Ok(Writer { entries, told: AtomicBool::new(false) })
    }

    pub(super) fn send(&self, entry: Entry) {
        if let Err(TrySendError::Full(_)) = self.entries.try_send(entry)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("choices of models come faster than they can be written; some teach nothing");
        }
    }

    /// Waits until all that was sent is written, but not for ever.
    pub(super) fn flush(&self, patience: Duration) {
        let (done, heard) = sync_channel(1);
        if self.entries.try_send(Entry::Flush(done)).is_ok() {
            // Whoever asked has waited long enough either way.
            let _ = heard.recv_timeout(patience);
        }
    }
}

fn write_all(shelf: &Shelf, waiting: &Receiver<Entry>) {
    let mut refusing = false;
    while let Ok(entry) = waiting.recv() {
        let written = write(shelf, entry);
        match &written {
            Err(error) if !refusing => {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "what models are worth is not being written down"
                );
            }
            Ok(()) if refusing => tracing::info!("what models are worth is being written down again"),
            _ => {}
        }
        refusing = written.is_err();
    }
}

fn write(shelf: &Shelf, entry: Entry) -> Result<(), StoreError> {
    match entry {
        Entry::Decided(decision) => shelf.keep(&decision),
        Entry::Ended { run, end } => shelf.end(&run, &end),
        Entry::Withdrawn(run) => shelf.withdraw(&run),
        Entry::Read => shelf.read(),
        Entry::Flush(done) => {
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
            Ok(())
        }
    }
}
