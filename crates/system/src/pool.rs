//! Which engine has a model: the chosen one, or another of the pool. Without a pool there is only the chosen one.
//!
//! A name goes to the first engine in order that lists it. An engine that does not list all it knows may get a name that
//! nobody lists; the cloud only where it was chosen itself, because a name that is mistyped, or whose engine is down, is no
//! reason to send a conversation to strangers.

use std::sync::Arc;

use futures::future::join_all;
use hob_core::{Engine, EngineError, ModelInfo};
use hob_engine::select::CLOUD_KEY;

use crate::catalog::{Catalog, Lookup};

/// A model and the engine that answers for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The engine's key.
    pub engine: String,
    pub model: ModelInfo,
}

/// The engines that may be asked.
pub struct Pool {
    chosen: Catalog,
    /// In the order of the configuration.
    others: Vec<Catalog>,
}

impl Pool {
    /// The chosen engine, and the others in the order in which they are asked for what it does not have.
    pub fn new(chosen: Arc<dyn Engine>, others: Vec<Arc<dyn Engine>>) -> Self {
        Pool { chosen: Catalog::new(chosen), others: others.into_iter().map(Catalog::new).collect() }
    }

    /// The engine that answers for whatever no other has.
    pub(crate) fn chosen(&self) -> &Arc<dyn Engine> {
        self.chosen.engine()
    }

    /// The keys of all engines but the chosen one.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|catalog| catalog.engine().key())
    }

    /// The first model of the chosen engine that can answer.
    pub(crate) async fn first(&self) -> Result<Option<String>, EngineError> {
        self.chosen.first().await
    }

    /// The engine that has this model. Where the engine that had it is down, the error is that engine's.
    pub async fn engine_of(&self, model: &str) -> Result<Arc<dyn Engine>, EngineError> {
        if self.others.is_empty() {
            self.chosen.check(model).await?;
            return Ok(Arc::clone(self.chosen()));
        }
        let mut may_have = None;
        let mut down = None;
        let mut silent = Vec::new();
        for catalog in self.catalogs() {
            let engine = catalog.engine();
            let is_cloud = engine.key() == CLOUD_KEY && !self.is_chosen(engine);
            match catalog.look_up(model).await {
                // Whether the cloud may answer for an engine that is down is not for the pool to decide.
                Lookup::Has if is_cloud && down.is_some() => {}
                Lookup::Has => return Ok(Arc::clone(engine)),
                Lookup::Lacks => {}
                Lookup::MayHave if is_cloud => {}
                Lookup::MayHave => may_have = may_have.or(Some(engine)),
                Lookup::Silent { had: true, error } => down = down.or(Some(error)),
                // It will tell by itself.
                Lookup::Silent { .. } if self.is_chosen(engine) => may_have = may_have.or(Some(engine)),
                Lookup::Silent { .. } => silent.push(engine.key()),
            }
        }
        match (down, may_have) {
            (Some(error), _) => Err(error),
            (None, Some(engine)) => Ok(Arc::clone(engine)),
            (None, None) => Err(self.not_found(model, &silent)),
        }
    }

    /// The engine to ask for a model that was configured, which may be none, or not be there yet.
    pub(crate) async fn engine_for(&self, model: Option<&str>) -> Arc<dyn Engine> {
        let found = match model {
            Some(model) if !self.others.is_empty() => self.engine_of(model).await.ok(),
            _ => None,
        };
        found.unwrap_or_else(|| Arc::clone(self.chosen()))
    }

    /// The engine of this key.
    pub(crate) fn with_key(&self, key: &str) -> Option<&Arc<dyn Engine>> {
        self.catalogs().map(Catalog::engine).find(|engine| engine.key() == key)
    }

    /// All models, each under the engine that answers for it. An engine that does not list its models is left out, unless none
    /// does.
    pub(crate) async fn list(&self) -> Result<Vec<ListedModel>, EngineError> {
        if self.others.is_empty() {
            let engine = self.chosen();
            let own = |model| ListedModel { engine: engine.key().to_owned(), model };
            return Ok(engine.list_models().await?.into_iter().map(own).collect());
        }
        gather(
            join_all(self.catalogs().map(|catalog| async { (catalog.engine(), catalog.list().await) })).await,
        )
    }

    /// The same out of lists that may be half a minute old, for those who choose among them.
    pub(crate) async fn recent(&self) -> Result<Vec<ListedModel>, EngineError> {
        gather(
            join_all(self.catalogs().map(|catalog| async { (catalog.engine(), catalog.recent().await) }))
                .await,
        )
    }

    /// The model that a caller means by `id`, if any engine lists it.
    pub(crate) async fn show(&self, id: &str) -> Result<Option<ListedModel>, EngineError> {
        let means = |listed: &ListedModel| {
            let mut engines = self.catalogs().map(Catalog::engine);
            engines.any(|engine| engine.key() == listed.engine && engine.means(id, &listed.model.id))
        };
        Ok(self.list().await?.into_iter().find(means))
    }

    fn catalogs(&self) -> impl Iterator<Item = &Catalog> {
        std::iter::once(&self.chosen).chain(&self.others)
    }

    fn is_chosen(&self, engine: &Arc<dyn Engine>) -> bool {
        Arc::ptr_eq(engine, self.chosen())
    }

    fn not_found(&self, model: &str, silent: &[&str]) -> EngineError {
        let keys: Vec<&str> = self.catalogs().map(|catalog| catalog.engine().key()).collect();
        let keys = keys.join(", ");
        let mut available = Vec::new();
        let answering = self.catalogs().filter(|catalog| !silent.contains(&catalog.engine().key()));
        for name in answering.flat_map(Catalog::names) {
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

/// One list of several: each model under the first engine that has it. An engine's failure counts only where all have failed.
fn gather<'a>(
    lists: impl IntoIterator<Item = (&'a Arc<dyn Engine>, Result<Vec<ModelInfo>, EngineError>)>,
) -> Result<Vec<ListedModel>, EngineError> {
    let mut listed: Vec<(&Arc<dyn Engine>, ModelInfo)> = Vec::new();
    let (mut answered, mut failure) = (false, None);
    for (engine, models) in lists {
        match models {
            Ok(models) => {
                answered = true;
                // Whoever asks for a name gets the first engine that has a model by it.
                let is_taken = |model: &ModelInfo| {
                    listed.iter().any(|(earlier, known)| earlier.means(&model.id, &known.id))
                };
                let new: Vec<ModelInfo> = models.into_iter().filter(|model| !is_taken(model)).collect();
                listed.extend(new.into_iter().map(|model| (engine, model)));
            }
            Err(error) => {
                tracing::debug!(engine = engine.key(), %error, "an engine of the pool does not list its models");
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
