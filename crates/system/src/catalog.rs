//! What models an engine has, remembered for a while so that a request does not pay for asking.
//!
//! Some engines answer a name they do not know with whatever model they have loaded. Nobody should get another model than
//! the one asked for, so names are looked up here before the engine sees them.

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

/// The last time an engine did not list its models.
struct Failure {
    at: Instant,
    /// So long it is not asked again: an engine that hangs costs half of the time at most, one that refuses nothing.
    took: Duration,
    reason: String,
}

/// What is known of a name.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The engine has it.
    Has,
    /// The engine has not, and it lists all that it has.
    Lacks,
    /// The engine does not list it, and knows models that it does not list.
    MayHave,
    /// The engine does not say. Whether it had the model when it was last heard.
    Silent { had: bool, error: EngineError },
}

/// One engine's models.
pub(crate) struct Catalog {
    engine: Arc<dyn Engine>,
    known: ArcSwapOption<Known>,
    /// Held by whoever asks the engine, so that a crowd asks once.
    asking: Mutex<Option<Failure>>,
}

impl Catalog {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Catalog { engine, known: ArcSwapOption::empty(), asking: Mutex::new(None) }
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Whether the engine has a model of this name. Asks only when what is known does not say yes.
    pub(crate) async fn look_up(&self, model: &str) -> Lookup {
        if self.fresh().is_some_and(|known| self.has(&known, model)) {
            return Lookup::Has;
        }
        match self.refreshed().await {
            Ok(known) if self.has(&known, model) => Lookup::Has,
            Ok(_) if self.engine.lists_every_model() => Lookup::Lacks,
            Ok(_) => Lookup::MayHave,
            Err(error) => {
                let had = self.known.load().as_ref().is_some_and(|known| self.has(known, model));
                Lookup::Silent { had, error }
            }
        }
    }

    /// Refuses a name that is no model of the engine. What cannot be known is let through: the engine will tell.
    pub(crate) async fn check(&self, model: &str) -> Result<(), EngineError> {
        if !self.engine.lists_every_model() {
            return Ok(());
        }
        match self.look_up(model).await {
            Lookup::Lacks => Err(EngineError::ModelNotFound {
                engine: self.engine.key().to_owned(),
                model: model.to_owned(),
                available: self.names(),
            }),
            Lookup::Has | Lookup::MayHave | Lookup::Silent { .. } => Ok(()),
        }
    }

    /// The models it has, as of a moment ago.
    pub(crate) async fn list(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.refreshed().await.map(|known| known.models.clone())
    }

    /// The models it has, out of a list that may be half a minute old: a request does not pay for asking.
    pub(crate) async fn recent(&self) -> Result<Vec<ModelInfo>, EngineError> {
        match self.fresh() {
            Some(known) => Ok(known.models.clone()),
            None => self.list().await,
        }
    }

    /// The ids it listed last.
    pub(crate) fn names(&self) -> Vec<String> {
        let known = self.known.load();
        known.iter().flat_map(|known| &known.models).map(|model| model.id.clone()).collect()
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
        let mut failure = self.asking.lock().await;
        if let Some(known) = self.known.load_full()
            && known.at.elapsed() < RECHECK
        {
            return Ok(known);
        }
        if let Some(Failure { at, took, reason }) = &*failure
            && (*at > arrived || at.elapsed() < *took)
        {
            return Err(self.unreachable(reason.clone()));
        }
        let began = Instant::now();
        let listed = tokio::time::timeout(PATIENCE, self.engine.list_models()).await;
        let timeout = || EngineError::Timeout { engine: self.engine.key().to_owned(), after: PATIENCE };
        match listed.unwrap_or_else(|_| Err(timeout())) {
            Ok(models) => {
                let known = Arc::new(Known { models, at: Instant::now() });
                self.known.store(Some(Arc::clone(&known)));
                *failure = None;
                Ok(known)
            }
            Err(error) => {
                let reason = match &error {
                    EngineError::Unreachable { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                *failure = Some(Failure { at: Instant::now(), took: began.elapsed(), reason });
                Err(error)
            }
        }
    }

    fn unreachable(&self, reason: String) -> EngineError {
        EngineError::Unreachable {
            engine: self.engine.key().to_owned(),
            address: self.engine.address().to_owned(),
            reason,
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
