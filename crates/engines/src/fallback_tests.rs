use std::sync::atomic::AtomicUsize;

use hob_core::{CallerRole, Message, Role};
use hob_testkit::ScriptedEngine;

use super::*;

struct Setup {
    engine: FallbackEngine,
    first: Arc<ScriptedEngine>,
    second: Arc<ScriptedEngine>,
    wrapped: Arc<AtomicUsize>,
}

/// vLLM has the model `large`, and the engine `fallback` has the fallback model `small`.
fn setup(fallback: &str) -> Setup {
    let engine =
        |key: &str, model: &str| Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(&[model]));
    let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
    let (first, second) = (engine("vllm", "large"), engine(fallback, "small"));
    let wrapped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&wrapped);
    let engine = FallbackEngine {
        first: shared(&first),
        fallback: Arc::new(Fallback::new("small", None)),
        pool: Arc::new(EnginePool::new(shared(&first), vec![shared(&second)])),
        rights: CallerRole::Owner.into(),
        wrap: Arc::new(move |engine| {
            count.fetch_add(1, Ordering::Relaxed);
            engine
        }),
        switch: Arc::default(),
    };
    Setup { engine, first, second, wrapped }
}

fn request() -> GenerateRequest {
    GenerateRequest {
        model: "large".into(),
        messages: vec![Message::new(Role::User, "hi")],
        ..GenerateRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_fallback_model_answers_through_the_wrapper_and_stays_for_the_run() {
    let setup = setup("ollama");
    setup.engine.generate(&request()).await.unwrap();
    assert_eq!(setup.wrapped.load(Ordering::Relaxed), 0);
    setup.first.set_gone(true);
    for asked in 1..=2 {
        assert_eq!(setup.engine.generate(&request()).await.unwrap().model, "small");
        assert_eq!((setup.second.requests().len(), setup.wrapped.load(Ordering::Relaxed)), (asked, asked));
    }
    assert!(setup.engine.stream(&request()).await.is_ok());
    assert_eq!(setup.engine.switch.model().map(|model| model.engine.key()), Some("ollama"));
}

#[tokio::test(start_paused = true)]
async fn a_closed_switch_keeps_the_first_engine() {
    let setup = setup("ollama");
    setup.first.set_gone(true);
    setup.engine.switch.close();
    assert!(setup.engine.generate(&request()).await.is_err());
    assert_eq!(setup.second.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn the_cloud_is_not_a_fallback_without_permission() {
    let setup = setup(CLOUD);
    setup.first.set_gone(true);
    assert!(setup.engine.generate(&request()).await.is_err());
    assert_eq!(setup.second.requests(), []);
}
