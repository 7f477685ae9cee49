//! Writes to the store from a thread of its own, so that no answer waits for the disk. A full queue drops commands: a reward that
//! is not learnt does no harm.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use hob_db::DatabaseError;

use crate::cache::RoutingCache;
use crate::records::RoutingDecision;
use crate::reward::AnswerOutcome;

/// Commands that may wait.
const QUEUE_CAPACITY: usize = 1024;

/// What the thread has to do.
pub(crate) enum WriterCommand {
    SaveDecision(Box<RoutingDecision>),
    RecordOutcome {
        run: Arc<str>,
        outcome: AnswerOutcome,
    },
    /// Another model has answered.
    Withdraw(Arc<str>),
    /// Reads again what was learnt.
    Read,
    /// Answers when everything before it is written.
    Flush(SyncSender<()>),
}

/// Sends commands to the thread, which ends when this is dropped.
pub(crate) struct RoutingWriter {
    commands: SyncSender<WriterCommand>,
    logged: Arc<LoggedProblems>,
}

/// Which problems are already logged, so that each is logged once.
#[derive(Default)]
struct LoggedProblems {
    /// The queue is full. Reset when the thread has caught up.
    too_many: AtomicBool,
    /// The thread has stopped, and does not start again.
    gone: AtomicBool,
}

impl RoutingWriter {
    pub(crate) fn start(cache: Arc<RoutingCache>) -> std::io::Result<Self> {
        let (commands, waiting) = sync_channel(QUEUE_CAPACITY);
        let logged = Arc::new(LoggedProblems::default());
        let queue = Queue { waiting, logged: Arc::clone(&logged) };
        thread::Builder::new().name("router".to_owned()).spawn(move || write_all(&cache, &queue))?;
        Ok(RoutingWriter { commands, logged })
    }

    pub(crate) fn send(&self, command: WriterCommand) {
        match self.commands.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                if !self.logged.too_many.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "choices of models come faster than they can be written; some teach nothing"
                    );
                }
            }
            Err(TrySendError::Disconnected(_)) => {
                if !self.logged.gone.swap(true, Ordering::Relaxed) {
                    tracing::error!("Routing writer thread stopped; learning is off until restart.");
                }
            }
        }
    }

    /// Waits until everything that was sent is written, `timeout` at most.
    pub(crate) fn flush(&self, timeout: Duration) {
        let (done, heard) = sync_channel(1);
        if self.commands.try_send(WriterCommand::Flush(done)).is_ok() {
            // The caller continues either way.
            let _ = heard.recv_timeout(timeout);
        }
    }
}

/// The commands that wait.
struct Queue {
    waiting: Receiver<WriterCommand>,
    logged: Arc<LoggedProblems>,
}

impl Queue {
    fn next(&self) -> Result<WriterCommand, RecvError> {
        match self.waiting.try_recv() {
            Ok(command) => Ok(command),
            Err(TryRecvError::Empty) => {
                // Caught up: the next full queue is logged again.
                self.logged.too_many.store(false, Ordering::Relaxed);
                self.waiting.recv()
            }
            Err(TryRecvError::Disconnected) => Err(RecvError),
        }
    }
}

fn write_all(cache: &RoutingCache, queue: &Queue) {
    let mut writing = StoreAccess {
        failed: "what models are worth is not being written down",
        works_again: "what models are worth is being written down again",
        failing: false,
    };
    let mut reading = StoreAccess {
        failed: "what was learnt of models cannot be read again; choices are made by what is known",
        works_again: "what was learnt of models can be read again",
        failing: false,
    };
    while let Ok(command) = queue.next() {
        let written = match command {
            WriterCommand::SaveDecision(decision) => cache.save(&decision),
            WriterCommand::RecordOutcome { run, outcome } => cache.record_outcome(&run, &outcome),
            WriterCommand::Withdraw(run) => cache.withdraw(&run),
            WriterCommand::Read => {
                reading.note(cache.read());
                continue;
            }
            WriterCommand::Flush(done) => {
                // The caller may have stopped waiting.
                let _ = done.send(());
                continue;
            }
        };
        if writing.note(written) == AccessResult::Done {
            reading.note(cache.renew());
        }
    }
}

/// Reading or writing, which may fail. The log says when failing begins and when it ends.
struct StoreAccess {
    failed: &'static str,
    works_again: &'static str,
    failing: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum AccessResult {
    Done,
    Failed,
}

impl StoreAccess {
    fn note(&mut self, result: Result<(), DatabaseError>) -> AccessResult {
        let was_failing = std::mem::replace(&mut self.failing, result.is_err());
        match result {
            Ok(()) => {
                if was_failing {
                    tracing::info!("{}", self.works_again);
                }
                AccessResult::Done
            }
            Err(error) => {
                if !was_failing {
                    tracing::warn!(error = &error as &dyn Error, "{}", self.failed);
                }
                AccessResult::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer without its thread.
    fn writer(capacity: usize) -> (RoutingWriter, Queue) {
        let (commands, waiting) = sync_channel(capacity);
        let logged = Arc::new(LoggedProblems::default());
        (RoutingWriter { commands, logged: Arc::clone(&logged) }, Queue { waiting, logged })
    }

    #[test]
    fn entries_that_are_let_go_are_mentioned_again_after_the_thread_has_caught_up() {
        let (writer, queue) = writer(1);
        writer.send(WriterCommand::Read);
        assert!(!writer.logged.too_many.load(Ordering::Relaxed));
        writer.send(WriterCommand::Read);
        assert!(writer.logged.too_many.load(Ordering::Relaxed));
        let writing = thread::spawn(move || while queue.next().is_ok() {});
        while writer.logged.too_many.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        drop(writer);
        writing.join().unwrap();
    }

    #[test]
    fn a_thread_that_has_died_does_not_go_unmentioned() {
        let (writer, queue) = writer(1);
        writer.logged.too_many.store(true, Ordering::Relaxed);
        drop(queue);
        writer.send(WriterCommand::Read);
        assert!(writer.logged.gone.load(Ordering::Relaxed));
    }
}
