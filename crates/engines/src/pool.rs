//! Which engine has a model: the selected engine, or another one of the pool. Without a pool there is only the
//! selected one.
//!
//! A name goes to the first engine in order that lists it, and to the cloud only if no local engine lists it,
//! whatever the order is. An engine that does not list all its models may get a name that no engine lists. The cloud
//! gets such a name only if it is the selected engine: a name with a typo, or whose engine is down, is no reason to
//! send a conversation to the cloud.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::join_all;
use futures::stream::{FuturesOrdered, StreamExt};
use hob_core::engine::CLOUD;
use hob_core::{Engine, EngineError, ListedModel, ModelInfo};

use crate::model_list_cache::{Lookup, ModelListCache};

/// Who chose the name of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    Caller,
    /// Hob, because the caller left the choice to it.
    Hob,
}

/// An engine that has a model.
pub struct EngineMatch {
    pub engine: Arc<dyn Engine>,
    /// Set if the cloud answers because a local engine that may have the model did not list its models.
    pub instead_of: Option<EngineError>,
}

impl EngineMatch {
    fn at(engine: &Arc<dyn Engine>) -> Self {
        EngineMatch { engine: Arc::clone(engine), instead_of: None }
    }
}

/// The engines that can answer.
pub struct EnginePool {
    /// Selected at the start.
    first: ModelListCache,
    /// In the order of the configuration.
    others: Vec<ModelListCache>,
    /// The engine that was added later. It is never removed, because requests in progress refer to it.
    added: OnceLock<ModelListCache>,
    /// The position of the selected engine among the first, the others and the added one.
    selected: AtomicUsize,
    /// Whether the cloud may answer if a local engine may have the model.
    cloud_allowed: bool,
}

impl EnginePool {
    /// The selected engine, and the others in the order in which they are tried.
    pub fn new(selected: Arc<dyn Engine>, others: Vec<Arc<dyn Engine>>) -> Self {
        let others = others.into_iter().map(ModelListCache::new).collect();
        EnginePool {
            first: ModelListCache::new(selected),
            others,
            added: OnceLock::new(),
            selected: AtomicUsize::new(0),
            cloud_allowed: false,
        }
    }

    /// Sets whether the cloud may answer in place of a local engine.
    pub fn allow_cloud(self, allowed: bool) -> Self {
        EnginePool { cloud_allowed: allowed, ..self }
    }

    /// Selects another engine for requests from now on. An engine whose key no engine of the pool has is added to it, which is possible
    /// once. Requests in progress keep their engine. Returns whether the engine of this key is selected now.
    pub fn select(&self, engine: &Arc<dyn Engine>) -> bool {
        if self.with_key(engine.key()).is_none() {
            self.added.get_or_init(|| ModelListCache::new(Arc::clone(engine)));
        }
        let Some(position) = self.members().position(|list| list.engine().key() == engine.key()) else {
            return false;
        };
        self.selected.store(position, Ordering::Release);
        true
    }

    /// The engine for every model that no other engine has.
    pub fn selected(&self) -> &Arc<dyn Engine> {
        self.selected_models().engine()
    }

    /// All engines, the selected one first.
    pub fn engines(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.selected_first().map(ModelListCache::engine)
    }

    /// The keys of all engines but the selected one.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.selected_first().skip(1).map(|list| list.engine().key())
    }

    /// The models of the selected engine.
    pub fn selected_models(&self) -> &ModelListCache {
        self.members().nth(self.selected.load(Ordering::Acquire)).unwrap_or(&self.first)
    }

    /// The engine that has a model that a caller named. If the engine that had it is down, the error is from that
    /// engine.
    pub async fn engine_of(&self, model: &str) -> Result<Arc<dyn Engine>, EngineError> {
        self.find(model, NamedBy::Caller).await.map(|found| found.engine)
    }

    /// The engine that has this model.
    pub async fn find(&self, model: &str, named_by: NamedBy) -> Result<EngineMatch, EngineError> {
        // It may change while engines are asked.
        let selected = self.selected_models();
        if self.is_one_engine() {
            selected.check(model).await?;
            return Ok(EngineMatch::at(selected.engine()));
        }
        if let Some(engine) = self.known_to_have(model) {
            return Ok(EngineMatch::at(engine));
        }
        let is_ours = named_by == NamedBy::Hob;
        let mut may_have = None;
        let mut down = None;
        let mut silent = Vec::new();
        // All engines are asked concurrently, and the results are used in order.
        let look_up = |list| async move { (ModelListCache::engine(list), list.look_up(model).await) };
        let mut lookups: FuturesOrdered<_> = self.lists().map(look_up).collect();
        while let Some((engine, lookup)) = lookups.next().await {
            let is_selected = Arc::ptr_eq(engine, selected.engine());
            let rather = |earlier: Option<_>| earlier.filter(|_| !is_selected).or(Some(engine));
            match lookup {
                // The fallback decides whether the cloud may answer for an engine that is down.
                Lookup::Has if is_cloud(engine) && down.is_some() => {}
                // A local engine may have the model, so the cloud needs permission, unless the caller named the
                // model.
                Lookup::Has if is_cloud(engine) && !is_selected && is_ours && !silent.is_empty() => {
                    let (_, error) = silent.swap_remove(0);
                    if self.cloud_allowed {
                        return Ok(EngineMatch { instead_of: Some(error), ..EngineMatch::at(engine) });
                    }
                    down = Some(error);
                }
                Lookup::Has => return Ok(EngineMatch::at(engine)),
                Lookup::Lacks => {}
                Lookup::MayHave if is_cloud(engine) && !is_selected => {}
                Lookup::MayHave => may_have = rather(may_have),
                Lookup::Silent { had: true, error } => down = down.or(Some(error)),
                Lookup::Silent { error, .. } => {
                    // The engine itself decides.
                    if is_selected {
                        may_have = rather(may_have);
                    }
                    silent.push((engine.key(), error));
                }
            }
        }
        let silent: Vec<&str> = silent.iter().map(|(key, _)| *key).collect();
        match (down, may_have) {
            (Some(error), _) => Err(error),
            (None, Some(engine)) => Ok(EngineMatch::at(engine)),
            (None, None) => Err(self.not_found(model, &silent)),
        }
    }

    /// The engine that has this model by the cached lists, without waiting. The cloud only if no engine before it has
    /// the model.
    fn known_to_have(&self, model: &str) -> Option<&Arc<dyn Engine>> {
        let mut unknown = Vec::new();
        for list in self.lists() {
            match list.contains(model) {
                Some(true) if is_cloud(list.engine()) && !unknown.is_empty() => return None,
                Some(true) => {
                    // Engines earlier in the order may have the model too, so their lists are refreshed.
                    unknown.into_iter().for_each(ModelListCache::refresh_in_background);
                    return Some(list.engine());
                }
                Some(false) => {}
                None => unknown.push(list),
            }
        }
        None
    }

    /// The engine for a configured model. The model may be unset, or not installed yet.
    pub async fn engine_for(&self, model: Option<&str>) -> Arc<dyn Engine> {
        let found = match model {
            Some(model) if !self.is_one_engine() => self.find(model, NamedBy::Hob).await.ok(),
            _ => None,
        };
        found.map_or_else(|| Arc::clone(self.selected()), |found| found.engine)
    }

    /// The engine with this key.
    pub fn with_key(&self, key: &str) -> Option<&Arc<dyn Engine>> {
        self.lists().map(ModelListCache::engine).find(|engine| engine.key() == key)
    }

    /// The models of the engine with this key have just changed.
    pub fn forget_models(&self, key: &str) {
        self.lists().filter(|list| list.engine().key() == key).for_each(ModelListCache::forget);
    }

    /// All models, each with the engine that answers for it. An engine that does not list its models is skipped,
    /// unless no engine does.
    pub async fn list(&self) -> Result<Vec<ListedModel>, EngineError> {
        merge_lists(join_all(self.lists().map(|list| async { (list.engine(), list.list().await) })).await)
    }

    /// The same from lists that may be some minutes old. Waits for engines that failed last time only if all of them
    /// failed.
    pub async fn recent(&self) -> Result<Vec<ListedModel>, EngineError> {
        let recent = merge_lists(
            join_all(self.lists().map(|list| async { (list.engine(), list.recent().await) })).await,
        );
        match recent {
            Ok(models) => Ok(models),
            Err(_) => self.list().await,
        }
    }

    /// Whether `id` refers to this model, by the rules of the engine that lists it.
    pub fn means(&self, id: &str, listed: &ListedModel) -> bool {
        self.with_key(&listed.engine).is_some_and(|engine| engine.means(id, &listed.model.id))
    }

    /// In the order in which they are tried: the cloud last, because local engines have priority.
    fn lists(&self) -> impl Iterator<Item = &ModelListCache> {
        let here = self.selected_first().filter(|list| !is_cloud(list.engine()));
        here.chain(self.selected_first().filter(|list| is_cloud(list.engine())))
    }

    fn selected_first(&self) -> impl Iterator<Item = &ModelListCache> {
        let selected = self.selected_models();
        let others = self.members().filter(move |list| !std::ptr::eq(*list, selected));
        std::iter::once(selected).chain(others)
    }

    /// In the order of their positions.
    fn members(&self) -> impl Iterator<Item = &ModelListCache> {
        std::iter::once(&self.first).chain(&self.others).chain(self.added.get())
    }

    fn is_one_engine(&self) -> bool {
        self.members().nth(1).is_none()
    }

    fn not_found(&self, model: &str, silent: &[&str]) -> EngineError {
        let keys: Vec<&str> = self.lists().map(|list| list.engine().key()).collect();
        let keys = keys.join(", ");
        let mut available = Vec::new();
        let answering = self.lists().filter(|list| !silent.contains(&list.engine().key()));
        for name in answering.flat_map(ModelListCache::names) {
            if !available.contains(&name) {
                available.push(name);
            }
        }
        EngineError::ModelNotFound {
            engine: match silent {
                [] => format!("the pool ({keys})"),
                silent => format!("the pool ({keys}; no answer from {})", silent.join(", ")),
            },
            model: model.to_owned(),
            available,
        }
    }
}

fn is_cloud(engine: &Arc<dyn Engine>) -> bool {
    engine.key() == CLOUD
}

/// Merges the lists: each model with the first engine that has it. The error of an engine counts only if all engines
/// failed.
fn merge_lists<'a>(
    lists: impl IntoIterator<Item = (&'a Arc<dyn Engine>, Result<Vec<ModelInfo>, EngineError>)>,
) -> Result<Vec<ListedModel>, EngineError> {
    let mut listed: Vec<(&Arc<dyn Engine>, ModelInfo)> = Vec::new();
    let (mut answered, mut failure) = (false, None);
    for (engine, models) in lists {
        match models {
            Ok(models) => {
                answered = true;
                // A request for this name goes to the first engine that has a model of that name.
                let is_taken = |model: &ModelInfo| {
                    listed.iter().any(|(earlier, known)| earlier.means(&model.id, &known.id))
                };
                let new: Vec<ModelInfo> = models.into_iter().filter(|model| !is_taken(model)).collect();
                listed.extend(new.into_iter().map(|model| (engine, model)));
            }
            Err(error) => {
                tracing::debug!(engine = engine.key(), %error, "engine does not list its models");
                failure = failure.or(Some(error));
            }
        }
    }
    match failure {
        Some(failure) if !answered => Err(failure),
        _ => {
            let owned = |(engine, model): (&Arc<dyn Engine>, _)| ListedModel {
                engine: engine.key().to_owned(),
                model,
            };
            Ok(listed.into_iter().map(owned).collect())
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
