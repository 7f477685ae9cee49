//! The model that stands in when the default one is not to be had: `[intelligence] fallback_model`.
//!
//! It answers only requests that left the choice to us, only when the default model's engine cannot be reached or no longer
//! has it, and only while nothing of an answer is out. The caller is always told. The cloud stands in for an engine of the
//! house only where the owner allows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use hob_core::engine::CLOUD;
use hob_core::{
    CallerRole, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    ModelInfo, ModelReason, Warning,
};

use crate::model_list_cache::{Lookup, ModelListCache};
use crate::pool::EnginePool;

/// Whether another model may answer after this failure: the first was never asked, or its engine has no such model.
pub fn is_unavailable(error: &EngineError) -> bool {
    matches!(error, EngineError::Unreachable { .. } | EngineError::ModelNotFound { .. })
}

/// The same for a failure to find out what model to ask. An engine that hangs then has not been asked either.
pub fn is_unresolved(error: &EngineError) -> bool {
    is_unavailable(error) || matches!(error, EngineError::Timeout { .. })
}

/// Who may stand in.
pub struct Fallback {
    model: String,
    /// Where the owner lets it answer for engines of the house.
    cloud: Option<ModelListCache>,
}

impl Fallback {
    /// `cloud` is the engine that may answer for those of the house, where the owner allows that.
    pub fn new(model: impl Into<String>, cloud: Option<Arc<dyn Engine>>) -> Self {
        Fallback { model: model.into(), cloud: cloud.map(ModelListCache::new) }
    }

    /// Who answers in place of `asked`, if anybody can.
    pub async fn find(
        &self,
        pool: &EnginePool,
        asked: &str,
        error: &EngineError,
        role: CallerRole,
    ) -> Option<FallbackModel> {
        let engine = match pool.engine_of(&self.model).await {
            Ok(engine) if !is_down(engine.as_ref(), error) => engine,
            Ok(_) | Err(_) => self.cloud_engine().await?,
        };
        if !role.may_use_engine(engine.key()) {
            return None;
        }
        let is_cloud_fallback = engine.key() == CLOUD && failed(pool, error) != CLOUD;
        if is_cloud_fallback && self.cloud.is_none() {
            tracing::warn!(
                model = %self.model,
                "the fallback model is in the cloud, which may not answer: see [intelligence] allow_cloud_fallback"
            );
            return None;
        }
        let (model, key) = (&self.model, engine.key());
        let reason = ModelReason::new(format!("{model} on {key} answers in place of {asked}: {error}"));
        tracing::warn!(%model, engine = key, asked, %error, "the fallback model answers");
        let warning = if is_cloud_fallback { Warning::CloudFallback } else { Warning::FallbackModel };
        Some(FallbackModel { model: model.clone(), engine, reason, warning })
    }

    /// The cloud, where it may answer and lists the model: a name it does not know is no reason to tell it anything.
    async fn cloud_engine(&self) -> Option<Arc<dyn Engine>> {
        let cloud = self.cloud.as_ref()?;
        match cloud.look_up(&self.model).await {
            Lookup::Has => Some(Arc::clone(cloud.engine())),
            Lookup::Lacks | Lookup::MayHave | Lookup::Silent { .. } => None,
        }
    }
}

/// The engine that could not answer: the one that says so, or where nobody has the model, the chosen one.
fn failed<'a>(pool: &'a EnginePool, error: &EngineError) -> &'a str {
    let named = match error {
        EngineError::Unreachable { engine, .. }
        | EngineError::Timeout { engine, .. }
        | EngineError::ModelNotFound { engine, .. } => pool.with_key(engine),
        _ => None,
    };
    named.unwrap_or(pool.selected()).key()
}

/// Whether this engine is the one that could not be reached.
fn is_down(engine: &dyn Engine, error: &EngineError) -> bool {
    match error {
        EngineError::Unreachable { engine: down, .. } | EngineError::Timeout { engine: down, .. } => {
            down == engine.key()
        }
        _ => false,
    }
}

/// A model that answers for another.
pub struct FallbackModel {
    pub model: String,
    pub engine: Arc<dyn Engine>,
    pub reason: ModelReason,
    pub warning: Warning,
}

/// Whether somebody stood in, known to the engine that is asked and to whoever tells the caller.
#[derive(Default)]
pub struct FallbackSwitch {
    model: OnceLock<FallbackModel>,
    /// Nobody may any more: the caller has been told who answers.
    closed: AtomicBool,
}

impl FallbackSwitch {
    pub fn model(&self) -> Option<&FallbackModel> {
        self.model.get()
    }

    /// Who answers stays as it is.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Puts around an engine what every engine of one run has, such as what records its answers.
pub type WrapEngine = Arc<dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + Send + Sync>;

/// An engine with another behind it that stands in.
pub struct FallbackEngine {
    /// What is asked first, wrapped already.
    pub first: Arc<dyn Engine>,
    pub fallback: Arc<Fallback>,
    pub pool: Arc<EnginePool>,
    /// On whose behalf.
    pub role: CallerRole,
    /// Wraps the engine of a stand-in as the first one is wrapped.
    pub wrap: WrapEngine,
    pub switch: Arc<FallbackSwitch>,
}

impl FallbackEngine {
    /// Whoever answers after the first failed so; `None` when that is final.
    async fn fallback_model(&self, request: &GenerateRequest, error: &EngineError) -> Option<FallbackModel> {
        if !is_unavailable(error) || self.switch.closed.load(Ordering::Relaxed) {
            return None;
        }
        self.fallback.find(&self.pool, &request.model, error, self.role).await
    }

    /// The engine of a stand-in, wrapped as the first one is, and the request as it gets it.
    fn second(
        &self,
        fallback_model: &FallbackModel,
        request: &GenerateRequest,
    ) -> (Arc<dyn Engine>, GenerateRequest) {
        let engine = (self.wrap)(Arc::clone(&fallback_model.engine));
        (engine, GenerateRequest { model: fallback_model.model.clone(), ..request.clone() })
    }

    fn switch_to(&self, fallback_model: FallbackModel) {
        // Two questions of one run at the same time would both have found the same.
        let _ = self.switch.model.set(fallback_model);
    }
}

/// The first failure is the true one, whatever the stand-in says.
fn fallback_failed(first: EngineError, second: &EngineError) -> EngineError {
    tracing::warn!(error = %second, "the fallback model did not answer either");
    first
}

#[async_trait]
impl Engine for FallbackEngine {
    fn key(&self) -> &str {
        self.first.key()
    }

    fn address(&self) -> &str {
        self.first.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        if let Some(fallback_model) = self.switch.model() {
            let (engine, request) = self.second(fallback_model, request);
            return engine.generate(&request).await;
        }
        let error = match self.first.generate(request).await {
            Ok(generation) => return Ok(generation),
            Err(error) => error,
        };
        let Some(fallback_model) = self.fallback_model(request, &error).await else { return Err(error) };
        let (engine, request) = self.second(&fallback_model, request);
        let answered = engine.generate(&request).await.map_err(|second| fallback_failed(error, &second));
        if answered.is_ok() {
            self.switch_to(fallback_model);
        }
        answered
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        if let Some(fallback_model) = self.switch.model() {
            let (engine, request) = self.second(fallback_model, request);
            return engine.stream(&request).await;
        }
        let error = match self.first.stream(request).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        let Some(fallback_model) = self.fallback_model(request, &error).await else { return Err(error) };
        let (engine, request) = self.second(&fallback_model, request);
        let answered = engine.stream(&request).await.map_err(|second| fallback_failed(error, &second));
        if answered.is_ok() {
            self.switch_to(fallback_model);
        }
        answered
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        self.first.embed(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.first.list_models().await
    }

    async fn health(&self) -> bool {
        self.first.health().await
    }

    fn lists_every_model(&self) -> bool {
        self.first.lists_every_model()
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.first.means(asked, listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.first.prepare(model).await
    }
}

#[cfg(test)]
#[path = "fallback_tests.rs"]
mod tests;
