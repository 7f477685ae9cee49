//! Texts as vectors.

use hob_core::{AskError, Caller, EmbedRequest, Embeddings, Engine};

use super::AskService;
use crate::ask::caller_policy::check_engine;
use crate::ask::model_aliases::explain_missing;
use crate::startup::embedder;
use hob_core::model::DEFAULT_MODEL;
use hob_telemetry::trace::{end_with, request_span, under};

impl AskService {
    /// Texts as vectors. `default`, and the name of the configured embedding model, mean the configured embedder; any other name
    /// is a model of the engine.
    pub async fn embed(&self, request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        let mut span = request_span(&self.recorder.tracer, caller, &request.model);
        let embeddings = self.vectors(request, &under(caller, &span)).await;
        end_with(&mut span, &embeddings);
        embeddings
    }

    async fn vectors(&self, mut request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        // The answer names the model that made the vectors.
        let alias = self.aliases.apply(&mut request.model);
        let embedder = match &self.embedder {
            None if request.model == DEFAULT_MODEL => return Err(embedder::not_configured().into()),
            Some(embedder) if request.model == DEFAULT_MODEL || request.model == embedder.model => embedder,
            _ => {
                let found = self.pool.engine_of(&request.model).await;
                let engine = found.map_err(|error| explain_missing(error.into(), alias.as_ref()))?;
                check_engine(engine.as_ref(), &request.model, caller.role)?;
                return Ok(self.recorded_on(&engine, caller).embed(&request).await?);
            }
        };
        request.model.clone_from(&embedder.model);
        check_engine(embedder.engine.as_ref(), &embedder.model, caller.role)?;
        let engine = self.recorded_on(&embedder.engine, caller);
        Ok(engine.embed(&request).await.map_err(embedder::explain)?)
    }
}
