//! Texts as vectors, and the engine that makes them.

use std::sync::Arc;

use hob_core::model::DEFAULT_MODEL;
use hob_core::{AskError, Caller, EmbedRequest, Embeddings, Engine};
use hob_telemetry::trace::end_with;

use super::AskService;
use crate::ask::key_admission::Begun;
use crate::startup::embedder;

impl AskService {
    /// Texts as vectors. `default`, and the name of the configured embedding model, mean the configured embedder; any other name
    /// is a model of the engine.
    pub async fn embed(&self, request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        let Begun { caller, running: _running, mut span } = self.begin(caller, &request.model).await?;
        let embeddings = self.vectors(request, &caller).await;
        end_with(&mut span, &embeddings);
        embeddings
    }

    async fn vectors(&self, mut request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        let engine = self.vector_engine(&mut request.model, caller).await?;
        let engine = self.recorded_on(&engine, caller);
        Ok(engine.embed(&request).await.map_err(embedder::explain)?)
    }

    /// The engine that makes vectors with a model. `model` becomes its name there, which the answer names.
    pub(super) async fn vector_engine(
        &self,
        model: &mut String,
        caller: &Caller,
    ) -> Result<Arc<dyn Engine>, AskError> {
        let (alias, rights) = (self.aliases.apply(model), caller.rights());
        match &self.embedder {
            None if *model == DEFAULT_MODEL => Err(embedder::not_configured().into()),
            Some(embedder) if *model == DEFAULT_MODEL || *model == embedder.model => {
                model.clone_from(&embedder.model);
                rights.check(embedder.engine.key(), model)?;
                Ok(Arc::clone(&embedder.engine))
            }
            _ => self.named_engine(model, alias.as_ref(), &rights).await,
        }
    }
}
