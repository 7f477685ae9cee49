//! What models an engine has, remembered for a while so that a request does not pay for asking.
//!
//! Some engines answer a name they do not know with whatever model they have loaded. Nobody should get another model than
//! the one asked for, so names are looked up here before the engine sees them.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::{Engine, EngineError, ModelInfo, ModelKind};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a list is believed.
const FRESH: Duration = Duration::from_secs(30);

/// How long it is made do with while a new one is asked for, so that nobody waits for an engine that is slow to list.
pub const STALE: Duration = Duration::from_secs(300);

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
pub enum Lookup {
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
pub struct Catalog {
    shelf: Arc<Shelf>,
    /// Whoever asks for a new list while the old one is used, and since when.
    behind: std::sync::Mutex<Option<(Instant, AbortOnDropHandle<()>)>>,
}

/// What the engine listed, for those who use it and the one who asks anew.
struct Shelf {
    engine: Arc<dyn Engine>,
    known: ArcSwapOption<Known>,
    /// Where the engine did not list its models when it was asked last.
    failure: ArcSwapOption<Failure>,
    /// Held by whoever asks the engine, so that a crowd asks once.
    asking: Mutex<()>,
}

impl Catalog {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let shelf = Shelf {
            engine,
            known: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            asking: Mutex::new(()),
        };
        Catalog { shelf: Arc::new(shelf), behind: std::sync::Mutex::new(None) }
    }

    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.shelf.engine
    }

    /// What is known of a name without asking; `None` when nothing is that could be relied on.
    pub fn recall(&self, model: &str) -> Option<bool> {
        self.at_hand().map(|known| self.shelf.has(&known, model))
    }

    /// Whether the engine has a model of this name. Asks only when what is known does not say yes.
    pub async fn look_up(&self, model: &str) -> Lookup {
        if self.recall(model) == Some(true) {
            return Lookup::Has;
        }
        match self.shelf.refreshed().await {
            Ok(known) if self.shelf.has(&known, model) => Lookup::Has,
            Ok(_) if self.engine().lists_every_model() => Lookup::Lacks,
            Ok(_) => Lookup::MayHave,
            Err(error) => {
                let had = self.shelf.known.load().as_ref().is_some_and(|known| self.shelf.has(known, model));
                Lookup::Silent { had, error }
            }
        }
    }

    /// Refuses a name that is no model of the engine. What cannot be known is let through: the engine will tell.
    pub async fn check(&self, model: &str) -> Result<(), EngineError> {
        if !self.engine().lists_every_model() {
            return Ok(());
        }
        match self.look_up(model).await {
            Lookup::Lacks => Err(EngineError::ModelNotFound {
                engine: self.engine().key().to_owned(),
                model: model.to_owned(),
                available: self.names(),
            }),
            Lookup::Has | Lookup::MayHave | Lookup::Silent { .. } => Ok(()),
        }
    }

    /// The models it has, as of a moment ago.
    pub async fn list(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.shelf.refreshed().await.map(|known| known.models.clone())
    }

    /// The models it has, out of a list that may be some minutes old: a request does not pay for asking, and does not wait for
    /// an engine that did not answer the last time.
    pub async fn recent(&self) -> Result<Vec<ModelInfo>, EngineError> {
        match (self.at_hand(), self.shelf.failure.load_full()) {
            (Some(known), _) => Ok(known.models.clone()),
            (None, Some(failure)) => {
                self.refresh_behind();
                Err(self.shelf.unreachable(&failure))
            }
            (None, None) => self.list().await,
        }
    }

    /// The ids it listed last.
    pub fn names(&self) -> Vec<String> {
        let known = self.shelf.known.load();
        known.iter().flat_map(|known| &known.models).map(|model| model.id.clone()).collect()
    }

    /// The first model the engine lists that can answer.
    pub async fn first(&self) -> Result<Option<String>, EngineError> {
        let known = match self.at_hand() {
            Some(known) => known,
            None => self.shelf.refreshed().await?,
        };
        let mut answering = known.models.iter().filter(|model| model.kind == ModelKind::Text);
        Ok(answering.next().map(|model| model.id.clone()))
    }

    /// The list, if it can be relied on. Where it is no longer young, a new one is asked for meanwhile.
    fn at_hand(&self) -> Option<Arc<Known>> {
        let known = self.shelf.known.load_full();
        let age = known.as_ref().map(|known| known.at.elapsed());
        if age.is_some_and(|age| age < FRESH) {
            return known;
        }
        // An engine that did not answer since may have been started anew, with other models.
        if age.is_none_or(|age| age >= STALE) || self.shelf.failure.load().is_some() {
            return None;
        }
        self.refresh_behind();
        known
    }

    /// Asks for a new list without anybody waiting for it.
    pub fn refresh_behind(&self) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |(since, asking): &(Instant, AbortOnDropHandle<()>)| {
            asking.is_finished() && since.elapsed() >= RECHECK
        };
        if behind.as_ref().is_none_or(is_due) {
            let shelf = Arc::clone(&self.shelf);
            let asking = tokio::spawn(async move { drop(shelf.refreshed().await) });
            *behind = Some((Instant::now(), AbortOnDropHandle::new(asking)));
        }
    }
}

impl Shelf {
    fn has(&self, known: &Known, asked: &str) -> bool {
        known.models.iter().any(|listed| self.engine.means(asked, &listed.id))
    }

    /// A list no older than [`RECHECK`]. Whoever waited for somebody else's question in vain does not ask again at once.
    async fn refreshed(&self) -> Result<Arc<Known>, EngineError> {
        let arrived = Instant::now();
        let _asking = self.asking.lock().await;
        if let Some(known) = self.known.load_full()
            && known.at.elapsed() < RECHECK
        {
            return Ok(known);
        }
        if let Some(failure) = &*self.failure.load()
            && (failure.at > arrived || failure.at.elapsed() < failure.took)
        {
            return Err(self.unreachable(failure));
        }
        let began = Instant::now();
        let listed = tokio::time::timeout(PATIENCE, self.engine.list_models()).await;
        let timeout = || EngineError::Timeout { engine: self.engine.key().to_owned(), after: PATIENCE };
        match listed.unwrap_or_else(|_| Err(timeout())) {
            Ok(models) => {
                let known = Arc::new(Known { models, at: Instant::now() });
                self.known.store(Some(Arc::clone(&known)));
                self.failure.store(None);
                Ok(known)
            }
            Err(error) => {
                let reason = match &error {
                    EngineError::Unreachable { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                let failure = Failure { at: Instant::now(), took: began.elapsed(), reason };
                self.failure.store(Some(Arc::new(failure)));
                Err(error)
            }
        }
    }

    fn unreachable(&self, failure: &Failure) -> EngineError {
        EngineError::Unreachable {
            engine: self.engine.key().to_owned(),
            address: self.engine.address().to_owned(),
            reason: failure.reason.clone(),
        }
    }
}

#[cfg(test)]
#[path = "model_list_cache_tests.rs"]
mod tests;
