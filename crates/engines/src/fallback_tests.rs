use std::sync::atomic::AtomicUsize;

use std::time::Duration;

use hob_core::{CallerRole, Message, Prompt, Role};
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

#[tokio::test(start_paused = true)]
async fn a_text_is_continued_by_the_fallback_model_under_its_own_name() {
    let setup = setup("ollama");
    setup.first.set_gone(true);
    let text = CompletionRequest {
        model: "large".into(),
        prompt: Prompt::Text("Once".into()),
        ..CompletionRequest::default()
    };
    assert_eq!(setup.engine.complete(&text).await.unwrap().model, "small");
    assert!(setup.engine.stream_completion(&text).await.is_ok());
    let asked = setup.second.completion_requests();
    assert_eq!(asked.iter().map(|request| request.model.as_str()).collect::<Vec<_>>(), ["small", "small"]);
}

#[tokio::test(start_paused = true)]
async fn one_model_in_the_cloud_replaces_another_one_without_permission() {
    let setup = setup(CLOUD);
    let fallback = Fallback::new("small", None);
    let gone = EngineError::ModelNotFound {
        engine: CLOUD.to_owned(),
        model: "large".to_owned(),
        available: Vec::new(),
    };
    let found = fallback.find(&setup.engine.pool, "large", &gone, &CallerRole::Owner.into()).await.unwrap();
    assert_eq!((found.engine.key(), found.warning), (CLOUD, AnswerWarning::FallbackModel));
}

#[test]
fn only_an_engine_that_did_not_process_a_request_is_unresolved() {
    let engine = || "vllm".to_owned();
    for (error, expected) in [
        (EngineError::Timeout { engine: engine(), after: Duration::from_secs(1) }, true),
        (
            EngineError::Unreachable {
                engine: engine(),
                address: "http://localhost:1".to_owned(),
                reason: "refused".into(),
            },
            true,
        ),
        (EngineError::ModelNotFound { engine: engine(), model: "m".to_owned(), available: vec![] }, true),
        (EngineError::Malformed { engine: engine(), reason: "no JSON".to_owned() }, false),
        (EngineError::Interrupted { engine: engine(), reason: "it ended".to_owned() }, false),
    ] {
        assert_eq!(is_unresolved(&error), expected, "{error}");
    }
}

/// An engine that answers every question about itself in its own way.
struct Peculiar;

#[async_trait]
impl Engine for Peculiar {
    fn key(&self) -> &str {
        "peculiar"
    }

    fn address(&self) -> &str {
        "http://peculiar.example"
    }

    async fn generate(&self, _request: &GenerateRequest) -> Result<Generation, EngineError> {
        Err(unsupported("generate"))
    }

    async fn stream(&self, _request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        Err(unsupported("stream"))
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        Ok(format!("{:?}", request.tokens))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(vec![ModelInfo { id: "odd".to_owned(), ..ModelInfo::default() }])
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        Some(ModelInfo { context: Some(7), ..model.clone() })
    }

    async fn health(&self) -> bool {
        false
    }

    fn lists_every_model(&self) -> bool {
        false
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        asked.len() == listed.len()
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        Err(unsupported(model))
    }
}

fn unsupported(field: &str) -> EngineError {
    EngineError::Unsupported { engine: "peculiar".to_owned(), field: field.to_owned(), hint: None }
}

#[tokio::test]
async fn questions_about_an_engine_go_to_the_first_one() {
    let setup = setup("ollama");
    let engine = FallbackEngine { first: Arc::new(Peculiar), ..setup.engine };
    assert_eq!((engine.key(), engine.address()), ("peculiar", "http://peculiar.example"));
    let tokens = DetokenizeRequest { model: "odd".to_owned(), tokens: vec![1, 2] };
    assert_eq!(engine.detokenize(&tokens).await.unwrap(), "[1, 2]");
    let models = engine.list_models().await.unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["odd"]);
    assert_eq!(engine.describe(&models[0]).await.and_then(|model| model.context), Some(7));
    assert!(!engine.lists_every_model());
    assert_eq!((engine.means("abc", "xyz"), engine.means("abc", "abcd")), (true, false));
    assert!(engine.prepare("odd").await.is_err());
    assert!(!engine.health().await);
    let usual = FallbackEngine { first: setup.first, ..engine };
    assert!(usual.health().await && usual.lists_every_model());
}
