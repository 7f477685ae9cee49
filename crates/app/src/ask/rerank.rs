//! Documents in the order in which they answer a question: the path of such a request.

use hob_core::{AskError, Caller, RerankRequest};
use hob_engines::{Reranked, rerank};
use hob_telemetry::trace::end_with;

use super::AskService;
use crate::ask::key_admission::Begun;
use crate::startup::embedder;

impl AskService {
    /// Documents in order. `default` means the configured embedder; any other name is a model of an engine.
    pub async fn rerank(&self, request: RerankRequest, caller: &Caller) -> Result<Reranked, AskError> {
        let Begun { caller, running: _running, mut span } = self.begin(caller, &request.model).await?;
        let reranked = self.ranked(request, &caller).await;
        end_with(&mut span, &reranked);
        reranked
    }

    async fn ranked(&self, mut request: RerankRequest, caller: &Caller) -> Result<Reranked, AskError> {
        let engine = self.vector_engine(&mut request.model, caller).await?;
        let engine = self.recorded_on(&engine, caller);
        Ok(rerank(&engine, &request).await.map_err(embedder::explain)?)
    }
}
