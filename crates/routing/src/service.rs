//! The service of routing: knowledge, speeds and prices; and the recording of choices, outcomes and ratings.
//!
//! They are stored in the shared database, and read again every few seconds. Without a database, nothing is learned.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_core::Usage;
use hob_core::engine::CLOUD;
use hob_db::{BatchWriter, DbResult, Storage};
use tokio::sync::OnceCell;

use crate::cache::RoutingCache;
use crate::measurements::Measurements;
use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, RoutingDecision};
use crate::reward::AnswerOutcome;
use crate::store::{NewRating, RoutingStore};
use crate::writer::{BATCHES, RoutingSink, WriterCommand};

/// How long the first question waits for the knowledge.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a flush waits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Cheap to clone; all clones share one state. The default one stores nothing.
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
    /// Stores in a database, which is created on the first write. `measurements` is `None` if nothing is measured.
    pub fn new(database: impl Into<Storage>, measurements: Option<Arc<dyn Measurements>>) -> Self {
        let cache = RoutingCache::new(database.into(), measurements);
        RoutingService { inner: Arc::new(Inner { cache: Arc::new(cache), ..Inner::default() }) }
    }

    /// The store, if it exists. Creates nothing. Blocks.
    pub fn find(&self) -> DbResult<Option<Arc<dyn RoutingStore>>> {
        self.inner.cache.find()
    }

    /// Saves a rating and learns from it. Returns whether the router chose the model. Blocks.
    pub fn rate(&self, new: &NewRating<'_>) -> DbResult<bool> {
        self.inner.cache.rate(new)
    }

    /// Waits until everything is written, up to a timeout. Blocks.
    pub fn flush(&self) {
        if let Some(Some(writer)) = self.inner.writer.get() {
            writer.flush(FLUSH_TIMEOUT);
        }
    }

    /// Flushes without blocking.
    pub async fn close(self) {
        // It fails only when the program ends.
        let _ = hob_db::spawn_blocking(move || self.flush()).await;
    }

    /// Waits briefly for the first read of the knowledge.
    pub(crate) async fn ready(&self) {
        let first = self.inner.first_read.get_or_init(|| async {
            let cache = Arc::clone(&self.inner.cache);
            let reading = hob_db::spawn_blocking(move || cache.read());
            // A late read is available for the next question.
            if let Ok(Ok(Err(error))) = tokio::time::timeout(FIRST_READ_TIMEOUT, reading).await {
                tracing::warn!(
                    %error,
                    "routing results cannot be read; Hob tries again. 'hob doctor' checks the database"
                );
            }
        });
        first.await;
        if self.inner.cache.is_stale() {
            self.send(WriterCommand::Read);
        }
    }

    pub(crate) fn class_record(&self, class: QuestionClass) -> ClassRecord {
        self.inner.cache.class_record(class)
    }

    /// Tokens per second, if measured.
    pub(crate) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.inner.cache.speed(engine, model)
    }

    /// The price of an answer in dollars, if known. Only the cloud has a price.
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
                tracing::warn!(
                    %error,
                    "routing results are not saved: no thread can be started. Raise the limit on threads \
                     (ulimit -u, or TasksMax= in the unit), and restart Hob"
                );
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
        fn speeds(&self, _days: u32, _most: u32) -> DbResult<Vec<MeasuredSpeed>> {
            Ok(Vec::new())
        }

        fn price(&self, model: &str, usage: Usage) -> Option<f64> {
            (model == "gpt-5.2").then_some(usage.completion_tokens as f64)
        }
    }

    #[test]
    fn only_the_cloud_has_a_price_which_may_be_unknown() {
        let service = RoutingService::new(
            Database::in_memory(&[MIGRATIONS]).expect("opened"),
            Some(Arc::new(PriceList)),
        );
        let usage = Some(Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() });
        assert_eq!(service.price("ollama", "m", None), Some(0.0));
        assert_eq!(service.price(CLOUD, "an unknown model", usage), None);
        assert_eq!(service.price(CLOUD, "gpt-5.2", usage), Some(1000.0));
        assert_eq!(service.price(CLOUD, "gpt-5.2", None), None);
        assert_eq!(RoutingService::default().price(CLOUD, "gpt-5.2", usage), None);
    }
}
