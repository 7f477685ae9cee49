//! Writes into the book from a thread of its own, so that no answer waits for the disk. What finds the queue full is let go: a
//! lesson that is missed harms nobody.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use hob_db::DatabaseError;

use crate::cache::Shelf;
use crate::records::RoutingDecision;
use crate::reward::AnswerOutcome;

/// Entries that may wait.
const CAPACITY: usize = 1024;

/// What is to be written.
pub(crate) enum Entry {
    Decided(Box<RoutingDecision>),
    Ended {
        run: Arc<str>,
        end: AnswerOutcome,
    },
    /// Another model has answered.
    Withdrawn(Arc<str>),
    /// Nothing: it is time to read again.
    Read,
    /// Everything before this is written when the sender hears of it.
    Flush(SyncSender<()>),
}

/// The thread, as those see it who have something to write. It ends when the last of them is gone.
pub(crate) struct Writer {
    entries: SyncSender<Entry>,
    said: Arc<Said>,
}

/// What was said of entries that are let go, so that it is said once.
#[derive(Default)]
struct Said {
    /// That there are too many. Until the thread has caught up.
    too_many: AtomicBool,
    /// That the thread is gone, which it does not come back from.
    gone: AtomicBool,
}

impl Writer {
    pub(crate) fn start(shelf: Arc<Shelf>) -> std::io::Result<Self> {
        let (entries, waiting) = sync_channel(CAPACITY);
        let said = Arc::new(Said::default());
        let queue = Queue { waiting, said: Arc::clone(&said) };
        thread::Builder::new().name("router".to_owned()).spawn(move || write_all(&shelf, &queue))?;
        Ok(Writer { entries, said })
    }

    pub(crate) fn send(&self, entry: Entry) {
        match self.entries.try_send(entry) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                if !self.said.too_many.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "choices of models come faster than they can be written; some teach nothing"
                    );
                }
            }
            Err(TrySendError::Disconnected(_)) => {
                if !self.said.gone.swap(true, Ordering::Relaxed) {
                    tracing::error!("Routing writer thread stopped; learning is off until restart.");
                }
            }
        }
    }

    /// Waits until all that was sent is written, but not for ever.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, heard) = sync_channel(1);
        if self.entries.try_send(Entry::Flush(done)).is_ok() {
            // Whoever asked has waited long enough either way.
            let _ = heard.recv_timeout(patience);
        }
    }
}

/// What waits to be written.
struct Queue {
    waiting: Receiver<Entry>,
    said: Arc<Said>,
}

impl Queue {
    fn next(&self) -> Result<Entry, RecvError> {
        match self.waiting.try_recv() {
            Ok(entry) => Ok(entry),
            Err(TryRecvError::Empty) => {
                // Caught up: when entries are let go again, that is news.
                self.said.too_many.store(false, Ordering::Relaxed);
                self.waiting.recv()
            }
            Err(TryRecvError::Disconnected) => Err(RecvError),
        }
    }
}

fn write_all(shelf: &Shelf, queue: &Queue) {
    let mut writing = Use {
        refused: "what models are worth is not being written down",
        works_again: "what models are worth is being written down again",
        refusing: false,
    };
    let mut reading = Use {
        refused: "what was learnt of models cannot be read again; choices are made by what is known",
        works_again: "what was learnt of models can be read again",
        refusing: false,
    };
    while let Ok(entry) = queue.next() {
        let written = match entry {
            Entry::Decided(decision) => shelf.keep(&decision),
            Entry::Ended { run, end } => shelf.end(&run, &end),
            Entry::Withdrawn(run) => shelf.withdraw(&run),
            Entry::Read => {
                reading.note(shelf.read());
                continue;
            }
            Entry::Flush(done) => {
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
                continue;
            }
        };
        if writing.note(written) == Outcome::Done {
            reading.note(shelf.renew());
        }
    }
}

/// One use of the book, which may be refused. That is said when it begins and when it is over.
struct Use {
    refused: &'static str,
    works_again: &'static str,
    refusing: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
}

impl Use {
    fn note(&mut self, result: Result<(), DatabaseError>) -> Outcome {
        let was_refusing = std::mem::replace(&mut self.refusing, result.is_err());
        match result {
            Ok(()) => {
                if was_refusing {
                    tracing::info!("{}", self.works_again);
                }
                Outcome::Done
            }
            Err(error) => {
                if !was_refusing {
                    tracing::warn!(error = &error as &dyn Error, "{}", self.refused);
                }
                Outcome::Refused
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer without its thread.
    fn writer(capacity: usize) -> (Writer, Queue) {
        let (entries, waiting) = sync_channel(capacity);
        let said = Arc::new(Said::default());
        (Writer { entries, said: Arc::clone(&said) }, Queue { waiting, said })
    }

    #[test]
    fn entries_that_are_let_go_are_mentioned_again_after_the_thread_has_caught_up() {
        let (writer, queue) = writer(1);
        writer.send(Entry::Read);
        assert!(!writer.said.too_many.load(Ordering::Relaxed));
        writer.send(Entry::Read);
        assert!(writer.said.too_many.load(Ordering::Relaxed));
        let writing = thread::spawn(move || while queue.next().is_ok() {});
        while writer.said.too_many.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        drop(writer);
        writing.join().unwrap();
    }

    #[test]
    fn a_thread_that_has_died_does_not_go_unmentioned() {
        let (writer, queue) = writer(1);
        writer.said.too_many.store(true, Ordering::Relaxed);
        drop(queue);
        writer.send(Entry::Read);
        assert!(writer.said.gone.load(Ordering::Relaxed));
    }
}
