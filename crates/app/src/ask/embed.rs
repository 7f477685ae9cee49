//! Texts as vectors.

use hob_core::{AskError, Caller, EmbedRequest, Embeddings, Engine};

use super::AskService;
use crate::ask::caller_policy::check_engine;
use crate::startup::embedder;
use hob_core::model::DEFAULT_MODEL;
use hob_telemetry::trace::{ask_error_type, request_span, under};

impl AskService {
    /// Texts as vectors. `default`, and the name of the model it stands for, mean the embedder of the house; any other name
    /// is a model of the engine.
    pub async fn embed(&self, request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        let mut span = request_span(&self.recorder.tracer, caller, &request.model);
        let embeddings = self.vectors(request, &under(caller, &span)).await;
        if let Err(error) = &embeddings {
            span.fail(ask_error_type(error));
        }
        span.end();
        embeddings
    }

    async fn vectors(&self, mut request: EmbedRequest, caller: &Caller) -> Result<Embeddings, AskError> {
        let house = match &self.embedder {
            None if request.model == DEFAULT_MODEL => return Err(embedder::nobody().into()),
            Some(house) if request.model == DEFAULT_MODEL || request.model == house.model => house,
            _ => {
                let engine = self.pool.engine_of(&request.model).await?;
                check_engine(engine.as_ref(), &request.model, caller.role)?;
                return Ok(self.recorded_on(&engine, caller).embed(&request).await?);
            }
        };
        request.model.clone_from(&house.model);
        check_engine(house.engine.as_ref(), &house.model, caller.role)?;
        let engine = self.recorded_on(&house.engine, caller);
        Ok(engine.embed(&request).await.map_err(embedder::explain)?)
    }
}
