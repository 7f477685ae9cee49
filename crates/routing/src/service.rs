//! What can be asked of routing: the knowledge of a class, the speed and the price of a model; and what can be reported to it: choices,
//! outcomes and ratings.
//!
//! They are stored in the database that all processes of one home share, and read again every few seconds. Without a database,
//! what was learnt is lost.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_core::Usage;
use hob_core::engine::CLOUD;
use hob_db::{BatchWriter, DatabaseError, LazyDatabase};
use tokio::sync::OnceCell;

use crate::cache::RoutingCache;
use crate::measurements::Measurements;
use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, RoutingDecision};
use crate::reward::AnswerOutcome;
use crate::store::{NewRating, RoutingStore};
use crate::writer::{BATCHES, RoutingSink, WriterCommand};

/// The longest wait of the first question for what was learnt.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest wait for what is still to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// What routing stores and learns. Cheap to clone; all clones share one state. The default one stores nothing.
#[derive(Clone, Default)]
pub struct RoutingService {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    cache: Arc<RoutingCache>,
    /// Started when there is something to write.
    writer: OnceLock<Option<BatchWriter<WriterCommand>>>,
    first_read: OnceCell<()>,
}

impl RoutingService {
    /// Stores in a database, which is created when there is something to write. `measurements` is `None` where nothing is measured.
    pub fn new(database: impl Into<LazyDatabase>, measurements: Option<Arc<dyn Measurements>>) -> Self {
        let cache = RoutingCache::new(database.into(), measurements);
        RoutingService { inner: Arc::new(Inner { cache: Arc::new(cache), ..Inner::default() }) }
    }

    /// The store; `None` where there is none yet. Creates nothing. Blocks.
    pub fn find(&self) -> Result<Option<Arc<dyn RoutingStore>>, DatabaseError> {
        self.inner.cache.find()
    }

    /// Saves a rating and learns from it. Returns whether the router chose the model. Blocks.
    pub fn rate(&self, new: &NewRating<'_>) -> Result<bool, DatabaseError> {
        self.inner.cache.rate(new)
    }

    /// Waits until everything is written, but not for ever. Blocks.
    pub fn flush(&self) {
        if let Some(Some(writer)) = self.inner.writer.get() {
            writer.flush(FLUSH_TIMEOUT);
        }
    }

    /// The same without blocking.
    pub async fn close(self) {
        // A failure is the blocking pool's end, which comes only with the program's.
        let _ = tokio::task::spawn_blocking(move || self.flush()).await;
    }

    /// Waits a moment for the first read of what was learnt; later calls wait for nothing.
    pub(crate) async fn ready(&self) {
        let first = self.inner.first_read.get_or_init(|| async {
            let cache = Arc::clone(&self.inner.cache);
            let reading = tokio::task::spawn_blocking(move || cache.read());
            // What is read too late for this question is there for the next one.
            if let Ok(Ok(Err(error))) = tokio::time::timeout(FIRST_READ_TIMEOUT, reading).await {
                tracing::warn!(%error, "routing results cannot be read");
            }
        });
        first.await;
        if self.inner.cache.is_stale() {
            self.send(WriterCommand::Read);
        }
    }

    /// What was learnt of a class of questions.
    pub(crate) fn class_record(&self, class: QuestionClass) -> ClassRecord {
        self.inner.cache.class_record(class)
    }

    /// Tokens that a model writes in a second, where that was measured.
    pub(crate) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.inner.cache.speed(engine, model)
    }

    /// What an answer cost in dollars; `None` where that is not known. Only the cloud has a price.
    pub(crate) fn price(&self, engine: &str, model: &str, usage: Option<Usage>) -> Option<f64> {
        if engine != CLOUD {
            return Some(0.0);
        }
        self.inner.cache.price(model, usage?)
    }

    pub(crate) fn record_decision(&self, decision: RoutingDecision) {
        self.send(WriterCommand::SaveDecision(Box::new(decision)));
    }

    pub(crate) fn record_outcome(&self, run: Arc<str>, outcome: AnswerOutcome) {
        self.send(WriterCommand::RecordOutcome { run, outcome });
    }

    pub(crate) fn withdraw(&self, run: Arc<str>) {
        self.send(WriterCommand::Withdraw(run));
    }

    fn send(&self, command: WriterCommand) {
        if !self.inner.cache.has_database() {
            return;
        }
        let start = || match BatchWriter::start(BATCHES, RoutingSink::new(Arc::clone(&self.inner.cache))) {
            Ok(writer) => Some(writer),
            Err(error) => {
                tracing::warn!(%error, "routing results are not saved: cannot start a thread");
                None
            }
        };
        if let Some(writer) = self.inner.writer.get_or_init(start) {
            writer.add(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_db::Database;

    use super::*;
    use crate::measurements::MeasuredSpeed;
    use crate::store::MIGRATIONS;

    /// Knows the price of one model.
    struct PriceList;

    impl Measurements for PriceList {
        fn speeds(&self, _days: u32, _most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError> {
            Ok(Vec::new())
        }

        fn price(&self, model: &str, usage: Usage) -> Option<f64> {
            (model == "gpt-5.2").then_some(usage.completion_tokens as f64)
        }
    }

    #[test]
    fn only_the_cloud_has_a_price_and_not_always_one_that_is_known() {
        let service = RoutingService::new(
            Database::in_memory(&[MIGRATIONS]).expect("opened"),
            Some(Arc::new(PriceList)),
        );
        let usage = Some(Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() });
        assert_eq!(service.price("ollama", "m", None), Some(0.0));
        assert_eq!(service.price(CLOUD, "a model that nobody has heard of", usage), None);
        assert_eq!(service.price(CLOUD, "gpt-5.2", usage), Some(1000.0));
        assert_eq!(service.price(CLOUD, "gpt-5.2", None), None);
        assert_eq!(RoutingService::default().price(CLOUD, "gpt-5.2", usage), None);
    }
}
