//! What can be asked of routing: the knowledge of a class, the speed and the price of a model; and what can be reported to it: choices,
//! outcomes and ratings.
//!
//! They are stored in the database that all processes of one home share, and read again every few seconds. Without a database,
//! what was learnt is lost.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_core::Usage;
use hob_core::engine::CLOUD;
use hob_db::{DatabaseError, LazyDatabase};
use tokio::sync::OnceCell;

use crate::cache::Shelf;
use crate::measurements::Measurements;
use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, RoutingDecision};
use crate::reward::AnswerOutcome;
use crate::store::{NewRating, RoutingStore};
use crate::writer::{Entry, Writer};

/// The longest that the first question waits for what is known.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// The longest wait for what is still to be written.
const LAST_ENTRIES: Duration = Duration::from_secs(5);

/// What routing stores and learns. Cheap to clone; all clones share one state. The default one stores nothing.
#[derive(Clone, Default)]
pub struct RouterBook {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    shelf: Arc<Shelf>,
    /// Started when there is something to write.
    writer: OnceLock<Option<Writer>>,
    first_read: OnceCell<()>,
}

impl RouterBook {
    /// Stores in a database, which is created when there is something to write. `measurements` is `None` where nothing is measured.
    pub fn new(database: impl Into<LazyDatabase>, measurements: Option<Arc<dyn Measurements>>) -> Self {
        let shelf = Shelf::new(database.into(), measurements);
        RouterBook { inner: Arc::new(Inner { shelf: Arc::new(shelf), ..Inner::default() }) }
    }

    /// The store; `None` where there is none yet. Creates nothing. Blocks.
    pub fn find(&self) -> Result<Option<Arc<dyn RoutingStore>>, DatabaseError> {
        self.inner.shelf.find()
    }

    /// Saves a rating and learns from it. Returns whether the router chose the model. Blocks.
    pub fn rate(&self, new: &NewRating<'_>) -> Result<bool, DatabaseError> {
        self.inner.shelf.rate(new)
    }

    /// Waits until everything is written, but not for ever. Blocks.
    pub fn flush(&self) {
        if let Some(Some(writer)) = self.inner.writer.get() {
            writer.flush(LAST_ENTRIES);
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
            let shelf = Arc::clone(&self.inner.shelf);
            let reading = tokio::task::spawn_blocking(move || shelf.read());
            // What is read too late for this question is there for the next one.
            if let Ok(Ok(Err(error))) = tokio::time::timeout(FIRST_LOOK, reading).await {
                tracing::warn!(%error, "what was learnt of models cannot be read");
            }
        });
        first.await;
        if self.inner.shelf.is_stale() {
            self.send(Entry::Read);
        }
    }

    /// What is known of a class.
    pub(crate) fn class(&self, class: QuestionClass) -> ClassRecord {
        self.inner.shelf.class(class)
    }

    /// Tokens that a model writes in a second, where that was measured.
    pub(crate) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.inner.shelf.speed(engine, model)
    }

    /// What an answer cost in dollars; `None` where that is not known. Only the cloud has a price.
    pub(crate) fn price(&self, engine: &str, model: &str, usage: Option<Usage>) -> Option<f64> {
        if engine != CLOUD {
            return Some(0.0);
        }
        self.inner.shelf.price(model, usage?)
    }

    pub(crate) fn decided(&self, decision: RoutingDecision) {
        self.send(Entry::Decided(Box::new(decision)));
    }

    pub(crate) fn ended(&self, run: Arc<str>, end: AnswerOutcome) {
        self.send(Entry::Ended { run, end });
    }

    pub(crate) fn withdrawn(&self, run: Arc<str>) {
        self.send(Entry::Withdrawn(run));
    }

    fn send(&self, entry: Entry) {
        if self.inner.shelf.is_nowhere() {
            return;
        }
        let start = || match Writer::start(Arc::clone(&self.inner.shelf)) {
            Ok(writer) => Some(writer),
            Err(error) => {
                tracing::warn!(%error, "what models are worth is not written down");
                None
            }
        };
        if let Some(writer) = self.inner.writer.get_or_init(start) {
            writer.send(entry);
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
        let book =
            RouterBook::new(Database::in_memory(&[MIGRATIONS]).expect("opened"), Some(Arc::new(PriceList)));
        let usage = Some(Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() });
        assert_eq!(book.price("ollama", "m", None), Some(0.0));
        assert_eq!(book.price(CLOUD, "a model that nobody has heard of", usage), None);
        assert_eq!(book.price(CLOUD, "gpt-5.2", usage), Some(1000.0));
        assert_eq!(book.price(CLOUD, "gpt-5.2", None), None);
        assert_eq!(RouterBook::default().price(CLOUD, "gpt-5.2", usage), None);
    }
}
