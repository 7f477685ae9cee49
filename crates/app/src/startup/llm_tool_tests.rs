use hob_config::Config;
use hob_core::EmptyKeyRing;
use hob_core::model::AUTO;
use hob_telemetry::{TelemetryService, TraceExporter};
use hob_testkit::ScriptedEngine;

use super::*;
use crate::databases::hob_database;
use crate::startup::telemetry::telemetry_options;

#[tokio::test(start_paused = true)]
async fn the_tool_llm_asks_the_engine_that_has_its_model() {
    let ollama = Arc::new(ScriptedEngine::saying(&["hi"]).called("ollama").with_models(&["small"]));
    // It gets every name that no engine lists, such as `auto`.
    let litellm = ScriptedEngine::saying(&["hi"]).called("litellm").with_models(&["large"]);
    let litellm = Arc::new(litellm.with_unlisted_models());
    let pool = Arc::new(EnginePool::new(ollama, vec![litellm]));
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.telemetry.enabled = false;
    config.telemetry.energy = false;
    let record = TelemetryService::open(&telemetry_options(&config), hob_database(home.path()));
    let recorder =
        Recorder::new(&telemetry_options(&config), &record, TraceExporter::open(None).tracer().clone());
    for (default, engine, model) in
        [(Some(AUTO), "ollama", "small"), (None, "ollama", "small"), (Some("large"), "litellm", "large")]
    {
        let named = DefaultModel::new(default.map(str::to_owned));
        let (asked, llm) = llm_tool(&pool, named, &recorder, Arc::new(EmptyKeyRing)).await;
        assert_eq!(
            (asked.load().engine.as_str(), (llm.model)().await.as_deref()),
            (engine, Some(model)),
            "{default:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_tool_llm_has_a_model_once_its_engine_answers() {
    let vllm = Arc::new(ScriptedEngine::saying(&["hi"]).called("vllm").with_models(&["large"]));
    vllm.set_gone(true);
    let pool = Arc::new(EnginePool::new(Arc::clone(&vllm) as Arc<dyn Engine>, Vec::new()));
    let target = LlmTarget { engine: "vllm".into(), model: None };
    let target = Arc::new(ArcSwap::from_pointee(target));
    let model = steady_model(target, pool, Arc::new(DefaultModel::new(None)));
    assert_eq!(model().await, None);
    vllm.set_gone(false);
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    assert_eq!(model().await.as_deref(), Some("large"));
}
