//! Which model answers if the default model is not available, and what the answer reports about it.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use hob_agents::ToolSet;
use hob_core::engine::CLOUD;
use hob_core::{
    AgentPreference, AnswerWarning, AskError, Caller, CompletionRequest, Delta, Engine, EngineError,
    EventBus, GenerateRequest, Message, ModelReason, Prompt, RequestSource, Role,
};
use hob_engines::{EnginePool, Fallback};
use hob_telemetry::{Inference, InferenceLog};
use hob_testkit::ScriptedEngine;

use crate::ask::{AskService, AskServiceParts};

/// Records which model of which engine was used.
#[derive(Default)]
struct CallLog(Mutex<Vec<String>>);

impl InferenceLog for CallLog {
    fn record(&self, inference: Inference) {
        let Inference { engine, model, ending, .. } = inference;
        let well = matches!(ending, hob_telemetry::InferenceEnd::Complete(_));
        self.0.lock().unwrap().push(format!("{engine}/{model} {}", if well { "answered" } else { "failed" }));
    }
}

struct TestSetup {
    system: AskService,
    vllm: Arc<ScriptedEngine>,
    ollama: Arc<ScriptedEngine>,
    cloud: Arc<ScriptedEngine>,
    calls: Arc<CallLog>,
}

/// Whether the configuration allows the cloud as a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloudUse {
    Allowed,
    Forbidden,
}

/// vLLM is selected and has the default model `large`; Ollama is in the pool and has `small`; the cloud has `gpt`.
fn setup(fallback: &str, cloud_use: CloudUse) -> TestSetup {
    setup_with("large", fallback, cloud_use)
}

fn setup_with(default: &str, fallback: &str, cloud_use: CloudUse) -> TestSetup {
    let engine =
        |key: &str, model: &str| Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(&[model]));
    let (vllm, ollama) = (engine("vllm", "large"), engine("ollama", "small"));
    let cloud = ScriptedEngine::saying(&["hi"]).called(CLOUD).with_models(&["gpt"]);
    let cloud = Arc::new(cloud.with_unlisted_models());
    let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
    let calls = Arc::new(CallLog::default());
    let system = AskService::new(AskServiceParts {
        engine: shared(&vllm),
        default_model: Some(default.into()),
        agent: None,
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::clone(&calls) as Arc<dyn InferenceLog>,
    });
    let pool = EnginePool::new(shared(&vllm), vec![shared(&ollama)]);
    let allowed = (cloud_use == CloudUse::Allowed).then(|| shared(&cloud));
    let system = system.with_pool(Arc::new(pool)).with_fallback(Some(Fallback::new(fallback, allowed)));
    TestSetup { system, vllm, ollama, cloud, calls }
}

fn asking(model: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, "hi")],
        ..GenerateRequest::default()
    }
}

fn caller() -> Caller {
    Caller::trusted(RequestSource::Server, "run")
}

impl TestSetup {
    /// The engine and model that answered, and the warnings.
    async fn ask(
        &self,
        model: &str,
    ) -> Result<(String, String, Option<String>, Vec<AnswerWarning>), AskError> {
        let answered = self.system.complete(asking(model), &caller()).await?;
        let reason = answered.reason.map(|reason| reason.as_str().to_owned());
        Ok((answered.engine, answered.generation.model, reason, answered.generation.warnings))
    }
}

const WHY: &str =
    "small on ollama answers in place of large: cannot reach vllm at http://vllm: Connection refused";

#[tokio::test(start_paused = true)]
async fn an_available_default_model_is_not_replaced() {
    let setup = setup("small", CloudUse::Forbidden);
    let answer = setup.ask("default").await.unwrap();
    assert_eq!(answer, ("vllm".into(), "large".into(), None, Vec::new()));
    assert_eq!(*setup.calls.0.lock().unwrap(), ["vllm/large answered"]);
}

#[tokio::test(start_paused = true)]
async fn the_fallback_answers_for_an_unreachable_engine_and_the_answer_says_so() {
    let setup = setup("small", CloudUse::Forbidden);
    setup.ask("default").await.unwrap();
    // Stopped after its models were listed, so that only a request notices it.
    setup.vllm.set_gone(true);
    let (engine, model, reason, warnings) = setup.ask("default").await.unwrap();
    assert_eq!((engine.as_str(), model.as_str(), reason.as_deref()), ("ollama", "small", Some(WHY)));
    assert_eq!(warnings, [AnswerWarning::FallbackModel]);

    let streaming = setup.system.stream(asking("default"), &caller()).await.unwrap();
    assert_eq!((streaming.engine.as_str(), streaming.model.as_str()), ("ollama", "small"));
    assert_eq!(streaming.reason.as_ref().map(ModelReason::as_str), Some(WHY));
    assert_eq!(streaming.warnings, [AnswerWarning::FallbackModel]);
    let deltas: Vec<Delta> = streaming.deltas.map(Result::unwrap).collect().await;
    assert_eq!(deltas[0], Delta::text("hi"));
    // The record has the failed call and the successful one.
    let [_, rest @ ..] = &setup.calls.0.lock().unwrap()[..] else { panic!("nothing recorded") };
    let both = ["vllm/large failed", "ollama/small answered"];
    assert_eq!(rest, [both, both].concat());
}

#[tokio::test(start_paused = true)]
async fn the_fallback_answers_for_a_removed_default_model() {
    let setup = setup_with("huge", "small", CloudUse::Forbidden);
    let answered = setup.system.complete(asking("default"), &caller()).await.unwrap();
    assert_eq!((answered.engine.as_str(), answered.generation.model.as_str()), ("ollama", "small"));
    let reason = answered.reason.unwrap();
    assert!(
        reason.as_str().contains("in place of huge: the pool (vllm, ollama) has no model 'huge'"),
        "{reason}"
    );
    assert_eq!(answered.generation.warnings, [AnswerWarning::FallbackModel]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_the_caller_named_is_never_replaced() {
    let setup = setup("small", CloudUse::Allowed);
    setup.ask("large").await.unwrap();
    setup.vllm.set_gone(true);
    for model in ["large", "huge"] {
        let error = setup.ask(model).await.unwrap_err();
        assert!(matches!(error, AskError::Engine(_)), "{error}");
    }
    assert_eq!(setup.ollama.requests(), []);
    assert_eq!(setup.cloud.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn the_cloud_is_a_fallback_only_with_permission() {
    let forbidden = setup("gpt", CloudUse::Forbidden);
    forbidden.vllm.set_gone(true);
    let error = forbidden.ask("default").await.unwrap_err();
    assert!(error.to_string().starts_with("cannot reach vllm"), "{error}");
    assert_eq!(forbidden.cloud.requests(), []);

    let allowed = setup("gpt", CloudUse::Allowed);
    allowed.vllm.set_gone(true);
    let (engine, model, reason, warnings) = allowed.ask("default").await.unwrap();
    assert_eq!((engine.as_str(), model.as_str()), (CLOUD, "gpt"));
    assert!(reason.is_some_and(|reason| reason.contains("on cloud answers in place of large")));
    assert_eq!(warnings, [AnswerWarning::CloudFallback]);
    assert_eq!(allowed.calls.0.lock().unwrap().last().map(String::as_str), Some("cloud/gpt answered"));
}

#[tokio::test(start_paused = true)]
async fn a_cloud_in_the_pool_needs_permission_as_a_fallback() {
    let setup = setup("gpt", CloudUse::Forbidden);
    let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
    let pool = EnginePool::new(shared(&setup.vllm), vec![shared(&setup.cloud)]);
    let system = setup.system.with_pool(Arc::new(pool));
    // A named model of the pool answers.
    assert_eq!(system.complete(asking("gpt"), &caller()).await.unwrap().engine, CLOUD);
    setup.vllm.set_gone(true);
    assert!(system.complete(asking("default"), &caller()).await.is_err());
    assert_eq!(setup.cloud.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_default_model_that_may_be_local_goes_to_the_cloud_only_with_permission_and_a_warning() {
    for allowed in [false, true] {
        let setup = setup_with("gpt", "small", CloudUse::Forbidden);
        let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
        // vLLM has not listed its models yet, so the model may be one of them.
        setup.vllm.set_gone(true);
        let pool = EnginePool::new(shared(&setup.vllm), vec![shared(&setup.cloud)]);
        let system = setup.system.with_pool(Arc::new(pool.allow_cloud(allowed)));
        let answered = system.complete(asking("default"), &caller()).await;
        assert_eq!(answered.is_ok(), allowed);
        if let Ok(answered) = answered {
            assert_eq!(answered.generation.warnings, [AnswerWarning::CloudFallback]);
            let reason = answered.reason.unwrap();
            assert!(reason.as_str().starts_with("the cloud answers: cannot reach vllm"), "{reason}");
        }
        assert_eq!(setup.cloud.requests().len(), usize::from(allowed));
        // A named model answers.
        let named = system.complete(asking("gpt"), &caller()).await.unwrap();
        assert_eq!((named.engine.as_str(), named.generation.warnings), (CLOUD, Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_selected_cloud_needs_permission_to_answer_for_a_local_engine() {
    for cloud_use in [CloudUse::Forbidden, CloudUse::Allowed] {
        let setup = setup("gpt", cloud_use);
        let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
        let pool = EnginePool::new(shared(&setup.cloud), vec![shared(&setup.vllm)]);
        let system = setup.system.with_pool(Arc::new(pool));
        assert_eq!(system.complete(asking("default"), &caller()).await.unwrap().engine, "vllm");
        setup.vllm.set_gone(true);
        let answered = system.complete(asking("default"), &caller()).await;
        match cloud_use {
            CloudUse::Forbidden => {
                let error = answered.err().unwrap().to_string();
                assert!(error.starts_with("cannot reach vllm"), "{error}");
                assert_eq!(setup.cloud.requests(), []);
            }
            CloudUse::Allowed => {
                assert_eq!(answered.unwrap().generation.warnings, [AnswerWarning::CloudFallback]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_model_that_the_cloud_does_not_list_is_not_sent_to_it() {
    let setup = setup("small", CloudUse::Allowed);
    setup.vllm.set_gone(true);
    setup.ollama.set_gone(true);
    assert!(setup.ask("default").await.is_err());
    assert_eq!(setup.cloud.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_request_is_not_sent_to_the_fallback() {
    let refusing = ScriptedEngine::new(|_| {
        vec![Err(EngineError::Refused {
            engine: "vllm".into(),
            status: 400,
            message: "too long".into(),
            code: None,
            param: None,
            retry_after: None,
        })]
    });
    let refusing: Arc<dyn Engine> = Arc::new(refusing.called("vllm").with_models(&["large"]));
    let setup = setup("small", CloudUse::Allowed);
    let pool = EnginePool::new(refusing, vec![Arc::clone(&setup.ollama) as Arc<dyn Engine>]);
    let system = setup.system.with_pool(Arc::new(pool));
    let error = system.complete(asking("default"), &caller()).await.unwrap_err();
    assert_eq!(error.to_string(), "vllm answered 400: too long");
    assert_eq!(setup.ollama.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_the_default_model_are_not_sent_to_the_fallback() {
    let completing = |prompt: Prompt| {
        CompletionRequest { model: "default".into(), prompt, ..CompletionRequest::default() }.into()
    };
    // The engine is unreachable when its models are listed, and only when it is asked.
    for is_listed in [false, true] {
        let setup = setup("small", CloudUse::Forbidden);
        if is_listed {
            setup.ask("default").await.unwrap();
        }
        setup.vllm.set_gone(true);
        let tokens = || completing(Prompt::Tokens(vec![1, 2, 3]));
        let whole = setup.system.complete_text(tokens(), &caller()).await.err();
        let streamed = setup.system.stream_text(tokens(), &caller()).await.err();
        for error in [whole, streamed] {
            let error = error.expect("no model answers").to_string();
            assert_eq!(error, "cannot reach vllm at http://vllm: Connection refused");
        }
        assert_eq!(setup.ollama.completion_requests(), []);
        let text = setup.system.complete_text(completing("hi".into()), &caller()).await.unwrap();
        assert_eq!(text.engine, "ollama");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_fallback_the_first_failure_is_returned() {
    let setup = setup("small", CloudUse::Forbidden);
    setup.ask("default").await.unwrap();
    setup.vllm.set_gone(true);
    setup.ollama.set_gone(true);
    let error = setup.ask("default").await.unwrap_err();
    assert_eq!(error.to_string(), "cannot reach vllm at http://vllm: Connection refused");
}

#[tokio::test(start_paused = true)]
async fn an_agents_run_continues_with_the_fallback() {
    let setup = setup("small", CloudUse::Forbidden);
    setup.ask("default").await.unwrap();
    setup.vllm.set_gone(true);
    let caller = Caller { agent: AgentPreference::Named("simple".into()), ..caller() };
    let answered = setup.system.complete(asking("default"), &caller).await.unwrap();
    assert_eq!(
        (answered.engine.as_str(), answered.reason.as_ref().map(ModelReason::as_str)),
        ("ollama", Some(WHY))
    );
    assert_eq!(setup.ollama.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_selected_because_no_engine_answered_is_reported_in_every_answer() {
    let setup = setup("small", CloudUse::Forbidden);
    let pool = EnginePool::new(Arc::clone(&setup.cloud) as Arc<dyn Engine>, Vec::new());
    let why = ModelReason::new("the cloud answers: ollama did not answer when Hob was started");
    let system = setup.system.with_pool(Arc::new(pool));
    let system = AskService { cloud_reason: Some(why.clone()), ..system };
    let answered = system.complete(asking("gpt"), &caller()).await.unwrap();
    assert_eq!((answered.engine.as_str(), answered.reason), (CLOUD, Some(why)));
    assert_eq!(answered.generation.warnings, [AnswerWarning::CloudFallback]);
}
