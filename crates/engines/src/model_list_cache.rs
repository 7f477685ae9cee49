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
const FRESH_FOR: Duration = Duration::from_secs(30);

/// How long it is made do with while a new one is asked for, so that nobody waits for an engine that is slow to list.
pub const USABLE_FOR: Duration = Duration::from_secs(300);

/// A list that takes longer than this is done without: the engine will tell what it has when it is asked.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A name that is not on the list may be new on the engine, but it is not looked up again more often than this.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

struct ModelList {
    models: Vec<ModelInfo>,
    at: Instant,
}

/// The last time an engine did not list its models.
struct ListFailure {
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
pub struct ModelListCache {
    cached: Arc<CachedList>,
    /// Whoever asks for a new list while the old one is used, and since when.
    background: std::sync::Mutex<Option<(Instant, AbortOnDropHandle<()>)>>,
}

/// What the engine listed, for those who use it and the one who asks anew.
struct CachedList {
    engine: Arc<dyn Engine>,
    known: ArcSwapOption<ModelList>,
    /// Where the engine did not list its models when it was asked last.
    failure: ArcSwapOption<ListFailure>,
    /// Held by whoever asks the engine, so that a crowd asks once.
    asking: Mutex<()>,
}

impl ModelListCache {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let cached = CachedList {
            engine,
            known: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            asking: Mutex::new(()),
        };
        ModelListCache { cached: Arc::new(cached), background: std::sync::Mutex::new(None) }
    }

    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.cached.engine
    }

    /// What is known of a name without asking; `None` when nothing is that could be relied on.
    pub fn contains(&self, model: &str) -> Option<bool> {
        self.usable().map(|known| self.cached.has(&known, model))
    }

    /// Whether the engine has a model of this name. Asks only when what is known does not say yes.
    pub async fn look_up(&self, model: &str) -> Lookup {
        if self.contains(model) == Some(true) {
            return Lookup::Has;
        }
        match self.cached.refreshed().await {
            Ok(known) if self.cached.has(&known, model) => Lookup::Has,
            Ok(_) if self.engine().lists_every_model() => Lookup::Lacks,
            Ok(_) => Lookup::MayHave,
            Err(error) => {
                let had =
                    self.cached.known.load().as_ref().is_some_and(|known| self.cached.has(known, model));
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
        self.cached.refreshed().await.map(|known| known.models.clone())
    }

    /// The models it has, out of a list that may be some minutes old: a request does not pay for asking, and does not wait for
    /// an engine that did not answer the last time.
    pub async fn recent(&self) -> Result<Vec<ModelInfo>, EngineError> {
        match (self.usable(), self.cached.failure.load_full()) {
            (Some(known), _) => Ok(known.models.clone()),
            (None, Some(failure)) => {
                self.refresh_in_background();
                Err(self.cached.unreachable(&failure))
            }
            (None, None) => self.list().await,
        }
    }

    /// The ids it listed last.
    pub fn names(&self) -> Vec<String> {
        let known = self.cached.known.load();
        known.iter().flat_map(|known| &known.models).map(|model| model.id.clone()).collect()
    }

    /// The first model the engine lists that can answer.
    pub async fn first_text_model(&self) -> Result<Option<String>, EngineError> {
        let known = match self.usable() {
            Some(known) => known,
            None => self.cached.refreshed().await?,
        };
        let mut answering = known.models.iter().filter(|model| model.kind == ModelKind::Text);
        Ok(answering.next().map(|model| model.id.clone()))
    }

    /// The list, if it can be relied on. Where it is no longer young, a new one is asked for meanwhile.
    fn usable(&self) -> Option<Arc<ModelList>> {
        let known = self.cached.known.load_full();
        let age = known.as_ref().map(|known| known.at.elapsed());
        if age.is_some_and(|age| age < FRESH_FOR) {
            return known;
        }
        // An engine that did not answer since may have been started anew, with other models.
        if age.is_none_or(|age| age >= USABLE_FOR) || self.cached.failure.load().is_some() {
            return None;
        }
        self.refresh_in_background();
        known
    }

    /// Asks for a new list without anybody waiting for it.
    pub fn refresh_in_background(&self) {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |(since, asking): &(Instant, AbortOnDropHandle<()>)| {
            asking.is_finished() && since.elapsed() >= RECHECK_AFTER
        };
        if background.as_ref().is_none_or(is_due) {
            let cached = Arc::clone(&self.cached);
            let asking = tokio::spawn(async move { drop(cached.refreshed().await) });
            *background = Some((Instant::now(), AbortOnDropHandle::new(asking)));
        }
    }
}

impl CachedList {
    fn has(&self, known: &ModelList, asked: &str) -> bool {
        known.models.iter().any(|listed| self.engine.means(asked, &listed.id))
    }

    /// A list no older than [`RECHECK_AFTER`]. Whoever waited for somebody else's question in vain does not ask again at once.
    async fn refreshed(&self) -> Result<Arc<ModelList>, EngineError> {
        let arrived = Instant::now();
        let _asking = self.asking.lock().await;
        if let Some(known) = self.known.load_full()
            && known.at.elapsed() < RECHECK_AFTER
        {
            return Ok(known);
        }
        if let Some(failure) = &*self.failure.load()
            && (failure.at > arrived || failure.at.elapsed() < failure.took)
        {
            return Err(self.unreachable(failure));
        }
        let began = Instant::now();
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.engine.list_models()).await;
        let timeout = || EngineError::Timeout { engine: self.engine.key().to_owned(), after: LIST_TIMEOUT };
        match listed.unwrap_or_else(|_| Err(timeout())) {
            Ok(models) => {
                let known = Arc::new(ModelList { models, at: Instant::now() });
                self.known.store(Some(Arc::clone(&known)));
                self.failure.store(None);
                Ok(known)
            }
            Err(error) => {
                let reason = match &error {
                    EngineError::Unreachable { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                let failure = ListFailure { at: Instant::now(), took: began.elapsed(), reason };
                self.failure.store(Some(Arc::new(failure)));
                Err(error)
            }
        }
    }

    fn unreachable(&self, failure: &ListFailure) -> EngineError {
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
