//! Models in the memory of engines: loaded before they are asked, unloaded on request, listed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hob_core::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};
use hob_core::{AskError, CallerRights, ComputeDevice, Engine, EngineError, RunningModel};

use super::AskService;
use crate::ask::caller_policy::check_engine;

/// An engine that takes longer to list its models in memory is skipped.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// A model in the memory of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInMemory {
    /// The key of its engine.
    pub engine: String,
    /// Its address; `None` in this process.
    pub host: Option<String>,
    pub model: RunningModel,
}

impl AskService {
    /// Loads a model, where its engine can. `auto` names none in particular, so nothing is loaded for it.
    pub async fn load_model(&self, model: &str, rights: impl Into<CallerRights>) -> Result<(), AskError> {
        match self.engine_and_model(model, &rights.into()).await? {
            Some((engine, model)) => Ok(engine.prepare(&model).await?),
            None => Ok(()),
        }
    }

    /// Frees the memory of a model, where its engine can.
    pub async fn unload_model(&self, model: &str, rights: impl Into<CallerRights>) -> Result<(), AskError> {
        match self.engine_and_model(model, &rights.into()).await? {
            Some((engine, model)) => Ok(engine.unload(&model).await?),
            None => Ok(()),
        }
    }

    /// The models in memory, each with the key of its engine. Engines that do not answer are skipped.
    pub async fn running_models(&self, rights: impl Into<CallerRights>) -> Vec<(String, RunningModel)> {
        let rights = rights.into();
        let engines = self.pool.engines().filter(|engine| rights.may_use_engine(engine.key()));
        let lists = engines.map(|engine| async move {
            let listed = tokio::time::timeout(LIST_TIMEOUT, engine.running_models()).await;
            match listed {
                Ok(Ok(models)) => models.into_iter().map(|model| (engine.key().to_owned(), model)).collect(),
                Ok(Err(error)) => {
                    tracing::debug!(engine = engine.key(), %error, "engine does not list its models in memory");
                    Vec::new()
                }
                Err(_) => Vec::new(),
            }
        });
        let running = join_all(lists).await.into_iter().flatten();
        running.filter(|(_, running): &(String, RunningModel)| rights.may_use_model(&running.id)).collect()
    }

    /// The models in memory of every host of every engine. Hosts that do not answer are skipped.
    pub async fn models_in_memory(&self) -> Vec<ModelInMemory> {
        let hosts = self.pool.engines().flat_map(|engine| match engine.members() {
            members if members.is_empty() => vec![Arc::clone(engine)],
            members => members,
        });
        let lists = hosts.map(|host| async move {
            let listed = tokio::time::timeout(LIST_TIMEOUT, host.running_models()).await;
            let models = listed.ok().and_then(Result::ok).unwrap_or_default();
            let loaded = |model| ModelInMemory {
                engine: host.key().to_owned(),
                host: Some(host.address().to_owned()).filter(|address| !address.is_empty()),
                model,
            };
            models.into_iter().map(loaded).collect::<Vec<_>>()
        });
        join_all(lists).await.into_iter().flatten().collect()
    }

    /// The graphics cards that engines in this process use.
    pub async fn devices(&self) -> Vec<ComputeDevice> {
        let lists = self.pool.engines().map(|engine| async move { engine.devices().await });
        join_all(lists).await.into_iter().flatten().collect()
    }

    /// The engine that has this model; `None` if the name means no particular one.
    async fn engine_and_model(
        &self,
        model: &str,
        rights: &CallerRights,
    ) -> Result<Option<(Arc<dyn Engine>, String)>, AskError> {
        let model = match self.meant_by(model) {
            DEFAULT_MODEL | AGENT_MODEL => {
                self.default_model().await?.ok_or_else(|| EngineError::ModelNotFound {
                    engine: self.engine().key().to_owned(),
                    model: DEFAULT_MODEL.to_owned(),
                    available: Vec::new(),
                })?
            }
            named => named.to_owned(),
        };
        if model == AUTO {
            return Ok(None);
        }
        let engine = self.pool.engine_of(&model).await?;
        check_engine(engine.as_ref(), &model, rights)?;
        Ok(Some((engine, model)))
    }
}
