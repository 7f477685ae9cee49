//! The tool `llm`: the engine and the model that it asks.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::FutureExt;
use futures::future::ready;
use hob_agents::builtin::{DefaultModelFn, EngineForRun, LlmOptions};
use hob_core::{
    AnswerDefaults, CallerRights, Engine, KeyGrant, KeyRing, Permit, RequestSource, RunEvents, ToolError,
};
use hob_engines::{DefaultModel, EnginePool};
use hob_telemetry::{RecordContext, RecordedEngine, Recorder};

use crate::ask::key_admission::present_grant;
use crate::ask::{LLM_TOOL, LlmTarget};

/// The tool `llm` always uses the same model, on the engine that has it. Its calls are recorded like all others.
/// They are charged to the key of the run, which must allow each of them when it is made. An engine that does not answer yet lists no
/// model; then the model is chosen at each call. Also returns what it asks.
pub(crate) async fn llm_tool(
    pool: &Arc<EnginePool>,
    default: DefaultModel,
    recorder: &Recorder,
    keys: Arc<dyn KeyRing>,
) -> (Arc<ArcSwap<LlmTarget>>, LlmOptions) {
    let model = default.steady(pool).await.ok().flatten();
    let engine = pool.engine_for(model.as_deref()).await;
    let context = RecordContext {
        run: "".into(),
        source: RequestSource::Server,
        agent: Some(LLM_TOOL.to_owned()),
        events: RunEvents::without_subscribers(),
        recorder: Arc::new(recorder.clone()),
        trace_parent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        tally: None,
    };
    let target = LlmTarget { engine: engine.key().to_owned(), model };
    let target = Arc::new(ArcSwap::from_pointee(target));
    let for_run = TargetEngine { target: Arc::clone(&target), pool: Arc::clone(pool), keys, context };
    let options = LlmOptions {
        engine: Arc::new(for_run),
        model: steady_model(Arc::clone(&target), Arc::clone(pool), Arc::new(default)),
        defaults: AnswerDefaults::default(),
    };
    (target, options)
}

/// The engine of the target, for runs whose key may use it now.
struct TargetEngine {
    target: Arc<ArcSwap<LlmTarget>>,
    pool: Arc<EnginePool>,
    keys: Arc<dyn KeyRing>,
    /// Without a key.
    context: RecordContext,
}

#[async_trait]
impl EngineForRun for TargetEngine {
    async fn engine_for(&self, permit: &Permit, model: &str) -> Result<Arc<dyn Engine>, ToolError> {
        let key = present_grant(self.keys.as_ref(), permit).await.map_err(ToolError::new)?;
        let engine = self.pool.with_key(&self.target.load().engine).unwrap_or_else(|| self.pool.selected());
        if let Some(key) = &key {
            check_key(key, engine.as_ref(), model)?;
        }
        let context = RecordContext { key, ..self.context.clone() };
        Ok(Arc::new(RecordedEngine::new(Arc::clone(engine), context)))
    }
}

/// Refuses what the key does not allow now. A run without a key got the tool by its role, which does not change.
fn check_key(key: &Arc<KeyGrant>, engine: &dyn Engine, model: &str) -> Result<(), ToolError> {
    if key.tools.as_ref().is_some_and(|tools| !tools.iter().any(|tool| tool == LLM_TOOL)) {
        return Err(ToolError(format!("the key '{}' may not use the tool '{LLM_TOOL}'", key.name)));
    }
    let rights = CallerRights { role: key.role, key: Some(Arc::clone(key)) };
    rights.check_engine(engine.key(), model).map_err(ToolError::new)?;
    rights.check_given(model).map_err(ToolError::new)
}

/// The model of the target; one that is chosen at each call if it has none.
fn steady_model(
    target: Arc<ArcSwap<LlmTarget>>,
    pool: Arc<EnginePool>,
    default: Arc<DefaultModel>,
) -> DefaultModelFn {
    Arc::new(move || {
        if let Some(model) = &target.load().model {
            return ready(Some(model.clone())).boxed();
        }
        let (pool, default) = (Arc::clone(&pool), Arc::clone(&default));
        async move { default.steady(&pool).await.ok().flatten() }.boxed()
    })
}

#[cfg(test)]
#[path = "llm_tool_tests.rs"]
mod tests;
