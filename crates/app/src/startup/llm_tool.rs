//! The tool `llm`: the engine and the model that it asks.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::ready;
use hob_agents::builtin::{DefaultModelFn, LlmOptions};
use hob_core::{AnswerDefaults, Engine, KeyRing, Permit, RequestSource, RunEvents};
use hob_engines::pool::EnginePool;
use hob_keys::KeyService;
use hob_telemetry::{RecordContext, RecordedEngine, Recorder};

use crate::ask::LlmTarget;
use crate::ask::default_model::DefaultModel;

/// The tool `llm` always uses the same model, on the engine that has it. Its calls are recorded like all others.
/// They are charged to the key of the run. An engine that does not answer yet lists no model; then the model is chosen at each call.
/// Also returns what it asks.
pub(crate) async fn llm_tool(
    pool: &Arc<EnginePool>,
    default: DefaultModel,
    recorder: &Recorder,
    keys: &Arc<KeyService>,
) -> (Arc<ArcSwap<LlmTarget>>, LlmOptions) {
    let model = default.steady(pool).await.ok().flatten();
    let engine = pool.engine_for(model.as_deref()).await;
    let context = RecordContext {
        run: "".into(),
        source: RequestSource::Server,
        agent: Some("llm".to_owned()),
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
    let (keys, engines, asked) = (Arc::clone(keys), Arc::clone(pool), Arc::clone(&target));
    let for_run = move |permit: &Permit| -> Arc<dyn Engine> {
        // A key that was revoked during the run is charged nothing more; the next request of the run is refused.
        let key = permit.key.as_deref().and_then(|name| keys.grant(name, permit.rule.as_deref()));
        let engine = engines.with_key(&asked.load().engine).unwrap_or_else(|| engines.selected());
        Arc::new(RecordedEngine::new(Arc::clone(engine), RecordContext { key, ..context.clone() }))
    };
    let options = LlmOptions {
        engine: Arc::new(for_run),
        model: steady_model(Arc::clone(&target), Arc::clone(pool), Arc::new(default)),
        defaults: AnswerDefaults::default(),
    };
    (target, options)
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
