//! Writes to the store from its own thread, so that no answer waits for the disk. A full queue drops commands: a reward that is not
//! learnt does no harm.

use std::sync::Arc;
use std::time::Duration;

use hob_db::{BatchOptions, BatchSink, DbResult, FailureLog};

use crate::cache::RoutingCache;
use crate::records::RoutingDecision;
use crate::reward::AnswerOutcome;

pub(crate) const BATCHES: BatchOptions = BatchOptions {
    thread: "router",
    capacity: 1024,
    batch: 64,
    gather: Duration::ZERO,
    dropped: "model choices cannot be written in time; the router does not learn from some of them. 'hob doctor' \
              checks the database",
};

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
}

pub(crate) struct RoutingSink {
    cache: Arc<RoutingCache>,
    writing: FailureLog,
    reading: FailureLog,
}

impl RoutingSink {
    pub(crate) fn new(cache: Arc<RoutingCache>) -> Self {
        RoutingSink {
            cache,
            writing: FailureLog::new(
                "routing results cannot be saved; the router does not learn from them. 'hob doctor' checks the \
                 database",
                "routing results are saved again",
            ),
            reading: FailureLog::new(
                "routing results cannot be read; the router uses what it read before. 'hob doctor' checks the \
                 database",
                "routing results are read again",
            ),
        }
    }
}

impl BatchSink<WriterCommand> for RoutingSink {
    /// Never fails: a command that cannot be written is skipped.
    fn write(&mut self, batch: &[WriterCommand]) -> DbResult<()> {
        let cache = &self.cache;
        for command in batch {
            let written = match command {
                WriterCommand::SaveDecision(decision) => cache.save(decision),
                WriterCommand::RecordOutcome { run, outcome } => cache.record_outcome(run, outcome),
                WriterCommand::Withdraw(run) => cache.withdraw(run),
                WriterCommand::Read => {
                    self.reading.note(&cache.read());
                    continue;
                }
            };
            self.writing.note(&written);
            if written.is_ok() {
                self.reading.note(&cache.renew());
            }
        }
        Ok(())
    }
}
