//! The fallback model, `[intelligence] fallback_model`: it answers when the default model is not available.
//!
//! It answers only requests that left the choice of a model to Hob, only if the engine of the default model is
//! unreachable or no longer has it, and only while no part of an answer was sent. The answer always says so. The
//! cloud replaces a local engine only if the owner allows it.
//!
//! Knows nothing of records: the caller wraps each engine that answers.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::future::BoxFuture;
use hob_core::engine::CLOUD;
use hob_core::{
    AnswerWarning, CallerRights, CompletionRequest, DetokenizeRequest, EmbedRequest, Embeddings, Engine,
    EngineError, GenerateRequest, Generation, GenerationStream, MediaAnswer, MediaRequest, ModelInfo,
    ModelReason, RerankRequest, Reranking, TokenizeRequest, Tokenized,
};

use crate::hints::move_hints;
use crate::model_list_cache::{Lookup, ModelListCache};
use crate::pool::EnginePool;

/// Whether another model may answer after this error: the first engine did not process the request, or has no such
/// model.
fn is_unavailable(error: &EngineError) -> bool {
    matches!(error, EngineError::Unreachable { .. } | EngineError::ModelNotFound { .. })
}

/// The same for an error while the model was looked up. An engine that timed out then did not process the request
/// either.
pub fn is_unresolved(error: &EngineError) -> bool {
    is_unavailable(error) || matches!(error, EngineError::Timeout { .. })
}

/// The fallback model, and whether the cloud may answer with it.
pub struct Fallback {
    model: String,
    /// The cloud, if it may replace a local engine.
    cloud: Option<ModelListCache>,
}

impl Fallback {
    /// `cloud` is the engine that may replace a local one, if the owner allows that.
    pub fn new(model: impl Into<String>, cloud: Option<Arc<dyn Engine>>) -> Self {
        Fallback { model: model.into(), cloud: cloud.map(ModelListCache::new) }
    }

    /// The engine and model that answer in place of `asked`, if there are any.
    pub async fn find(
        &self,
        pool: &EnginePool,
        asked: &str,
        error: &EngineError,
        rights: &CallerRights,
    ) -> Option<FallbackModel> {
        let engine = match pool.engine_of(&self.model).await {
            Ok(engine) if !is_down(engine.as_ref(), error) => engine,
            Ok(_) | Err(_) => self.cloud_engine().await?,
        };
        if !rights.may_use_engine(engine.key()) || !rights.may_be_given(&self.model) {
            return None;
        }
        let is_cloud_fallback = engine.key() == CLOUD && failed(pool, error) != CLOUD;
        if is_cloud_fallback && self.cloud.is_none() {
            tracing::warn!(
                model = %self.model,
                "the fallback model is in the cloud, which is not allowed. To allow it, set [intelligence] \
                 allow_cloud_fallback"
            );
            return None;
        }
        let (model, key) = (&self.model, engine.key());
        let reason = ModelReason::new(format!("{model} on {key} answers in place of {asked}: {error}"));
        tracing::warn!(
            %model,
            engine = key,
            asked,
            %error,
            "the fallback model answers. 'hob doctor' checks the engines"
        );
        let warning =
            if is_cloud_fallback { AnswerWarning::CloudFallback } else { AnswerWarning::FallbackModel };
        Some(FallbackModel { model: model.clone(), engine, reason, warning })
    }

    /// The cloud, if it may answer and lists the model. A name that it does not list is not sent to it.
    async fn cloud_engine(&self) -> Option<Arc<dyn Engine>> {
        let cloud = self.cloud.as_ref()?;
        match cloud.look_up(&self.model).await {
            Lookup::Has => Some(Arc::clone(cloud.engine())),
            Lookup::Lacks | Lookup::MayHave | Lookup::Silent { .. } => None,
        }
    }
}

/// The engine that failed: the one that the error names, or the selected one if no engine has the model.
fn failed<'a>(pool: &'a EnginePool, error: &EngineError) -> &'a str {
    let named = match error {
        EngineError::Unreachable { engine, .. }
        | EngineError::Timeout { engine, .. }
        | EngineError::ModelNotFound { engine, .. } => pool.with_key(engine),
        _ => None,
    };
    named.unwrap_or(pool.selected()).key()
}

/// Whether this is the engine that could not be reached.
fn is_down(engine: &dyn Engine, error: &EngineError) -> bool {
    match error {
        EngineError::Unreachable { engine: down, .. } | EngineError::Timeout { engine: down, .. } => {
            down == engine.key()
        }
        _ => false,
    }
}

/// A model that answers in place of another.
pub struct FallbackModel {
    pub model: String,
    pub engine: Arc<dyn Engine>,
    pub reason: ModelReason,
    pub warning: AnswerWarning,
}

/// Whether the fallback model answers. Shared by the engine and by the code that reports the model to the caller.
#[derive(Default)]
pub(crate) struct FallbackSwitch {
    model: OnceLock<FallbackModel>,
    /// The caller knows the answering model, so it may not change any more.
    closed: AtomicBool,
}

impl FallbackSwitch {
    pub(crate) fn model(&self) -> Option<&FallbackModel> {
        self.model.get()
    }

    /// Prevents a later switch.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Wraps every engine that answers, for example to record its requests.
pub(crate) type WrapEngine = Arc<dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + Send + Sync>;

/// An engine that switches to the fallback model when the first engine fails.
pub(crate) struct FallbackEngine {
    /// The engine that is tried first, already wrapped.
    pub(crate) first: Arc<dyn Engine>,
    pub(crate) fallback: Arc<Fallback>,
    pub(crate) pool: Arc<EnginePool>,
    /// What the caller may use.
    pub(crate) rights: CallerRights,
    /// Wraps the engine of the fallback model.
    pub(crate) wrap: WrapEngine,
    pub(crate) switch: Arc<FallbackSwitch>,
}

impl FallbackEngine {
    /// The fallback model after this error of the first engine; `None` when the error is final.
    async fn fallback_model(&self, asked: &str, error: &EngineError) -> Option<FallbackModel> {
        if !is_unavailable(error) || self.switch.closed.load(Ordering::Relaxed) {
            return None;
        }
        self.fallback.find(&self.pool, asked, error, &self.rights).await
    }

    /// Asks the first engine, and the fallback model if the first is not available. `ask` sends the request with the
    /// name of another model where it gets one.
    async fn answered<'a, T>(
        &'a self,
        model: &str,
        ask: impl Fn(Arc<dyn Engine>, Option<String>) -> BoxFuture<'a, Result<T, EngineError>> + Send,
    ) -> Result<T, EngineError> {
        if let Some(fallback_model) = self.switch.model() {
            return ask(self.wrapped(fallback_model), Some(fallback_model.model.clone())).await;
        }
        let error = match ask(Arc::clone(&self.first), None).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(fallback_model) = self.fallback_model(model, &error).await else { return Err(error) };
        let answered = ask(self.wrapped(&fallback_model), Some(fallback_model.model.clone())).await;
        match answered {
            Ok(answer) => {
                self.switch_to(fallback_model);
                Ok(answer)
            }
            Err(second) => Err(fallback_failed(error, &second)),
        }
    }

    fn wrapped(&self, fallback_model: &FallbackModel) -> Arc<dyn Engine> {
        (self.wrap)(Arc::clone(&fallback_model.engine))
    }

    fn switch_to(&self, fallback_model: FallbackModel) {
        // Concurrent requests of one run find the same fallback model.
        let _ = self.switch.model.set(fallback_model);
    }
}

/// The request, for another model where one is named. Its hints follow it from the first engine to the one that is asked.
fn with_model<'a>(
    request: &'a GenerateRequest,
    model: Option<String>,
    [first, asked]: [&dyn Engine; 2],
) -> Cow<'a, GenerateRequest> {
    let Some(model) = model else { return Cow::Borrowed(request) };
    let mut request = GenerateRequest { model, ..request.clone() };
    move_hints((&mut request.extra, &request.hints), &request.model, [first.key(), asked.key()]);
    Cow::Owned(request)
}

fn completion_with_model<'a>(
    request: &'a CompletionRequest,
    model: Option<String>,
    [first, asked]: [&dyn Engine; 2],
) -> Cow<'a, CompletionRequest> {
    let Some(model) = model else { return Cow::Borrowed(request) };
    let mut request = CompletionRequest { model, ..request.clone() };
    move_hints((&mut request.extra, &request.hints), &request.model, [first.key(), asked.key()]);
    Cow::Owned(request)
}

/// The caller gets the first error, not that of the fallback model.
fn fallback_failed(first: EngineError, second: &EngineError) -> EngineError {
    tracing::warn!(
        error = %second,
        "the fallback model did not answer either. 'hob doctor' checks the engines"
    );
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
        self.answered(&request.model, |engine, model| {
            Box::pin(async move {
                let request = with_model(request, model, [self.first.as_ref(), engine.as_ref()]);
                engine.generate(&request).await
            })
        })
        .await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.answered(&request.model, |engine, model| {
            Box::pin(async move {
                let request = with_model(request, model, [self.first.as_ref(), engine.as_ref()]);
                engine.stream(&request).await
            })
        })
        .await
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        self.answered(&request.model, |engine, model| {
            Box::pin(async move {
                let request = completion_with_model(request, model, [self.first.as_ref(), engine.as_ref()]);
                engine.complete(&request).await
            })
        })
        .await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        self.answered(&request.model, |engine, model| {
            Box::pin(async move {
                let request = completion_with_model(request, model, [self.first.as_ref(), engine.as_ref()]);
                engine.stream_completion(&request).await
            })
        })
        .await
    }

    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        self.first.tokenize(request).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        self.first.detokenize(request).await
    }

    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        self.first.media(request).await
    }

    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        self.first.rerank(request).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        self.first.embed(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.first.list_models().await
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        self.first.describe(model).await
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
