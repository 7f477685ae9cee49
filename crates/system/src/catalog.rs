//! What models the engine has, remembered for a while so that a request does not pay for asking.
//!
//! Some engines answer a name they do not know with whatever model they have loaded. Nobody should get another model than
//! the one asked for, so names are checked here before the engine sees them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::{Engine, EngineError, ModelInfo, ModelKind};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a list is believed.
const FRESH: Duration = Duration::from_secs(30);

/// A list that takes longer than this is done without: the engine will tell what it has when it is asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// A name that is not on the list may be new on the engine, but it is not looked up again more often than this.
const RECHECK: Duration = Duration::from_secs(1);

struct Known {
    models: Vec<ModelInfo>,
    at: Instant,
}

/// The engine's models.
pub(crate) struct Catalog {
    engine: Arc<dyn Engine>,
    known: ArcSwapOption<Known>,
    /// Held by whoever asks the engine, so that a crowd asks once. Has the time of the last failure.
    asking: Mutex<Option<Instant>>,
}

impl Catalog {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Catalog { engine, known: ArcSwapOption::empty(), asking: Mutex::new(None) }
    }

    /// Refuses a name that is no model of the engine. What cannot be known is let through: the engine will tell.
    pub(crate) async fn check(&self, model: &str) -> Result<(), EngineError> {
        if !self.engine.lists_every_model() {
            return Ok(());
        }
        if let Some(known) = self.known.load().as_ref()
            && known.at.elapsed() < FRESH
            && self.has(known, model)
        {
            return Ok(());
        }
        match self.refreshed().await {
            Ok(known) if !self.has(&known, model) => Err(EngineError::ModelNotFound {
                engine: self.engine.key().to_owned(),
                model: model.to_owned(),
                available: known.models.iter().map(|model| model.id.clone()).collect(),
            }),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The first model the engine lists that can answer.
    pub(crate) async fn first(&self) -> Result<Option<String>, EngineError> {
        let known = match self.fresh() {
            Some(known) => known,
            None => self.refreshed().await?,
        };
        let mut answering = known.models.iter().filter(|model| model.kind == ModelKind::Text);
        Ok(answering.next().map(|model| model.id.clone()))
    }

    /// The list, if it is young enough to be believed.
    fn fresh(&self) -> Option<Arc<Known>> {
        self.known.load_full().filter(|known| known.at.elapsed() < FRESH)
    }

    fn has(&self, known: &Known, asked: &str) -> bool {
        known.models.iter().any(|listed| self.engine.means(asked, &listed.id))
    }

    /// A list no older than [`RECHECK`]. Whoever waited for somebody else's question in vain does not ask again at once.
    async fn refreshed(&self) -> Result<Arc<Known>, EngineError> {
        let arrived = Instant::now();
        let mut failed_at = self.asking.lock().await;
        if let Some(known) = self.known.load_full()
            && known.at.elapsed() < RECHECK
        {
            return Ok(known);
        }
        let timeout = || EngineError::Timeout { engine: self.engine.key().to_owned(), after: PATIENCE };
        if failed_at.is_some_and(|failed_at| failed_at > arrived) {
            return Err(timeout());
        }
        let listed = tokio::time::timeout(PATIENCE, self.engine.list_models()).await;
        match listed.unwrap_or_else(|_| Err(timeout())) {
            Ok(models) => {
                let known = Arc::new(Known { models, at: Instant::now() });
                self.known.store(Some(Arc::clone(&known)));
                Ok(known)
            }
            Err(error) => {
                *failed_at = Some(Instant::now());
                Err(error)
            }
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
