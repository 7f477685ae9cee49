//! Documents in the order in which they answer a question: the path of such a request.

use std::sync::Arc;

use hob_core::model::DEFAULT_MODEL;
use hob_core::{AskError, Caller, RerankRequest};
use hob_engines::{Reranked, rerank};
use hob_telemetry::trace::{end_with, request_span, under};

use super::AskService;
use crate::ask::caller_policy::check_engine;
use crate::ask::key_admission::Admitted;
use crate::startup::embedder;

impl AskService {
    /// Documents in order. `default` means the configured embedder; any other name is a model of an engine.
    pub async fn rerank(&self, request: RerankRequest, caller: &Caller) -> Result<Reranked, AskError> {
        let mut span = request_span(&self.recorder.tracer, caller, &request.model);
        let reranked = match self.admitted(under(caller, &span)).await {
            Ok(Admitted { caller, running: _running }) => self.ranked(request, &caller).await,
            Err(error) => Err(error),
        };
        end_with(&mut span, &reranked);
        reranked
    }

    async fn ranked(&self, mut request: RerankRequest, caller: &Caller) -> Result<Reranked, AskError> {
        // The answer names the model that compared the texts.
        self.aliases.apply(&mut request.model);
        let engine = match &self.embedder {
            None if request.model == DEFAULT_MODEL => return Err(embedder::not_configured().into()),
            Some(embedder) if request.model == DEFAULT_MODEL || request.model == embedder.model => {
                request.model.clone_from(&embedder.model);
                Arc::clone(&embedder.engine)
            }
            _ => self.pool.engine_of(&request.model).await?,
        };
        check_engine(engine.as_ref(), &request.model, &caller.rights())?;
        let engine = self.recorded_on(&engine, caller);
        Ok(rerank(&engine, &request).await.map_err(embedder::explain)?)
    }
}
