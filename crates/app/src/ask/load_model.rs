//! Models in the memory of engines: loaded before they are asked, unloaded on request, listed for a caller.

use std::sync::Arc;

use hob_core::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};
use hob_core::{AskError, CallerRights, Engine, EngineError, RunningModel};

use super::AskService;

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
        let running = self.pool.running_models(|engine| rights.may_use_engine(engine)).await;
        running.into_iter().filter(|(_, running)| rights.may_use_model(&running.id)).collect()
    }

    /// The engine that has this model; `None` if the name means no particular one.
    async fn engine_and_model(
        &self,
        model: &str,
        rights: &CallerRights,
    ) -> Result<Option<(Arc<dyn Engine>, String)>, AskError> {
        let mut model = model.to_owned();
        let alias = self.aliases.apply(&mut model);
        if [DEFAULT_MODEL, AGENT_MODEL].contains(&model.as_str()) {
            model = self.default_model().await?.ok_or_else(|| EngineError::ModelNotFound {
                engine: self.engine().key().to_owned(),
                model: DEFAULT_MODEL.to_owned(),
                available: Vec::new(),
            })?;
        }
        if model == AUTO {
            return Ok(None);
        }
        let engine = self.named_engine(&model, alias.as_ref(), rights).await?;
        Ok(Some((engine, model)))
    }
}
