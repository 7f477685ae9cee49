//! A cache of the models that an engine lists, so that a request does not wait for the list.
//!
//! Some engines answer a request for an unknown model with any model they have loaded. So Hob looks up the name here
//! before it sends the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::{Engine, EngineError, ModelInfo, ModelKind, UnreachableReason};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// A list of this age is used as it is.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// A list of this age is used while a new one is requested in the background, so that no request waits for a slow
/// engine.
pub const USABLE_FOR: Duration = Duration::from_secs(300);

/// The longest wait for a list. After that the request is sent without a check.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A name that is not on the list may be new on the engine. The list is not requested again within this time.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

struct ModelList {
    models: Vec<ModelInfo>,
    at: Instant,
    /// How often the models had changed when it was requested.
    changes: u64,
}

/// The latest failure to list the models.
struct ListFailure {
    at: Instant,
    /// The engine is not asked again for this long: an engine that hangs costs at most half of the time.
    took: Duration,
    reason: UnreachableReason,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The engine has the model.
    Has,
    /// The engine does not have the model, and lists all its models.
    Lacks,
    /// The engine does not list the model, and does not list all its models.
    MayHave,
    /// The engine does not list its models. `had` is whether its latest list had the model.
    Silent { had: bool, error: EngineError },
}

/// The models of one engine.
pub struct ModelListCache {
    cached: Arc<CachedList>,
    /// The task that requests a new list in the background, and when it started.
    background: Mutex<Option<(Instant, AbortOnDropHandle<()>)>>,
}

/// The list, shared with the background task.
struct CachedList {
    engine: Arc<dyn Engine>,
    known: ArcSwapOption<ModelList>,
    /// How often Hob has changed the models. A list that was requested before a change may arrive after it.
    changes: AtomicU64,
    /// Set if the latest request for the list failed.
    failure: ArcSwapOption<ListFailure>,
    /// Held during a request to the engine, so that concurrent callers share it.
    asking: tokio::sync::Mutex<()>,
}

impl ModelListCache {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let cached = CachedList {
            engine,
            known: ArcSwapOption::empty(),
            changes: AtomicU64::new(0),
            failure: ArcSwapOption::empty(),
            asking: tokio::sync::Mutex::new(()),
        };
        ModelListCache { cached: Arc::new(cached), background: Mutex::new(None) }
    }

    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.cached.engine
    }

    /// Whether the cached list contains a model; `None` without a usable list.
    pub fn contains(&self, model: &str) -> Option<bool> {
        // No reference is taken: all threads would share it, and every request asks.
        let known = self.cached.known.load();
        let known = known.as_ref().filter(|known| self.is_usable(known))?;
        Some(self.cached.has(known, model))
    }

    /// Whether the engine has a model of this name. Requests the list unless the cached one contains the name.
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

    /// Fails for a name that the engine does not have. If that is not known, the engine itself decides.
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

    /// The models, from a list that is no older than a second.
    pub async fn list(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.cached.refreshed().await.map(|known| known.models.clone())
    }

    /// The models, from a list that may be some minutes old. Does not wait for an engine that failed last time.
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

    /// The ids of the latest list.
    pub fn names(&self) -> Vec<String> {
        let known = self.cached.known.load();
        known.iter().flat_map(|known| &known.models).map(|model| model.id.clone()).collect()
    }

    /// The first text model of the list.
    pub async fn first_text_model(&self) -> Result<Option<String>, EngineError> {
        let known = match self.usable() {
            Some(known) => known,
            None => self.cached.refreshed().await?,
        };
        let mut answering = known.models.iter().filter(|model| model.kind == ModelKind::Text);
        Ok(answering.next().map(|model| model.id.clone()))
    }

    /// The list, if it is recent enough.
    fn usable(&self) -> Option<Arc<ModelList>> {
        self.cached.known.load_full().filter(|known| self.is_usable(known))
    }

    /// Whether the list is recent enough. An old list is refreshed in the background.
    fn is_usable(&self, known: &ModelList) -> bool {
        if self.cached.is_outdated(known) {
            return false;
        }
        let age = known.at.elapsed();
        if age < FRESH_FOR {
            return true;
        }
        // The engine may have restarted with other models after a failure.
        if age >= USABLE_FOR || self.cached.failure.load().is_some() {
            return false;
        }
        self.refresh_in_background();
        true
    }

    /// The next use requests the list again: the models have just changed.
    pub fn forget(&self) {
        self.cached.changes.fetch_add(1, Ordering::SeqCst);
        self.cached.known.store(None);
    }

    /// Requests a new list in a background task.
    pub fn refresh_in_background(&self) {
        let mut background = self.background.lock();
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

    /// Whether the models have changed since the list was requested.
    fn is_outdated(&self, known: &ModelList) -> bool {
        known.changes != self.changes.load(Ordering::SeqCst)
    }

    /// A list no older than [`RECHECK_AFTER`]. A caller that waited for another caller's failed request does not send
    /// one itself.
    async fn refreshed(&self) -> Result<Arc<ModelList>, EngineError> {
        let arrived = Instant::now();
        let _asking = self.asking.lock().await;
        if let Some(known) = self.known.load_full()
            && known.at.elapsed() < RECHECK_AFTER
            && !self.is_outdated(&known)
        {
            return Ok(known);
        }
        if let Some(failure) = &*self.failure.load()
            && (failure.at > arrived || failure.at.elapsed() < failure.took)
        {
            return Err(self.unreachable(failure));
        }
        let began = Instant::now();
        let changes = self.changes.load(Ordering::SeqCst);
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.engine.list_models()).await;
        let timeout = || EngineError::Timeout { engine: self.engine.key().to_owned(), after: LIST_TIMEOUT };
        match listed.unwrap_or_else(|_| Err(timeout())) {
            Ok(models) => {
                let known = Arc::new(ModelList { models, at: Instant::now(), changes });
                self.known.store(Some(Arc::clone(&known)));
                self.failure.store(None);
                Ok(known)
            }
            Err(error) => {
                let reason = match &error {
                    EngineError::Unreachable { reason, .. } => reason.clone(),
                    other => other.to_string().into(),
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
