//! Texts as vectors.

use hob_core::{EmbedRequest, Embeddings, Engine, EngineError};

use super::{DEFAULT_MODEL, System};
use crate::caller::Caller;
use crate::embedder;
use crate::trace::{kind_of, request_span, under};

impl System {
    /// Texts as vectors. `default`, and the name of the model it stands for, mean the embedder of the house; any other name
    /// is a model of the engine.
    pub async fn embed(&self, request: EmbedRequest, caller: &Caller) -> Result<Embeddings, EngineError> {
        let mut span = request_span(&self.spans, caller, &request.model);
        let embeddings = self.vectors(request, &under(caller, &span)).await;
        if let Err(error) = &embeddings {
            span.fail(kind_of(error));
        }
        span.end();
        embeddings
    }

    async fn vectors(&self, mut request: EmbedRequest, caller: &Caller) -> Result<Embeddings, EngineError> {
        let house = match &self.embedder {
            None if request.model == DEFAULT_MODEL => return Err(embedder::nobody()),
            Some(house) if request.model == DEFAULT_MODEL || request.model == house.model => house,
            _ => {
                let engine = self.pool.engine_of(&request.model).await?;
                return self.metered_on(&engine, caller).embed(&request).await;
            }
        };
        request.model.clone_from(&house.model);
        let engine = self.metered_on(&house.engine, caller);
        engine.embed(&request).await.map_err(embedder::explain)
    }
}
