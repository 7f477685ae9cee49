use std::sync::{Arc, Mutex};

use futures::StreamExt;
use hob_agents::ToolSet;
use hob_core::engine::CLOUD;
use hob_core::{
    AgentPreference, AskError, Caller, Delta, Engine, EngineError, EventBus, FinishReason, GenerateRequest,
    Message, RequestSource, Role, ToolCallDelta, Usage,
};
use hob_db::Database;
use hob_engines::fallback::Fallback;
use hob_engines::pool::EnginePool;
use hob_routing::{DrawFn, Knowledge, PolicyName, RandomDraw, RateError, Rating, Router, RoutingService};
use hob_telemetry::NoInferenceLog;
use hob_testkit::ScriptedEngine;

use crate::ask::{AskService, AskServiceParts};
use crate::databases::HOB_MIGRATIONS;

const SMALL: &str = "small:1b";
const LARGE: &str = "large:70b";

fn asking(model: &str, text: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, text)],
        ..GenerateRequest::default()
    }
}

fn run(name: &str) -> Caller {
    Caller { agent: AgentPreference::None, ..Caller::trusted(RequestSource::Server, name) }
}

fn engine() -> ScriptedEngine {
    ScriptedEngine::saying(&["yes"]).with_models(&[LARGE, SMALL]).with_embedding_models(&["tiny-vectors:1m"])
}

fn system(engine: ScriptedEngine, default_model: Option<&str>) -> (AskService, Arc<ScriptedEngine>) {
    let engine = Arc::new(engine);
    let parts = AskServiceParts {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        default_model: default_model.map(str::to_owned),
        agent: hob_agents::agent("simple"),
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    };
    (AskService::new(parts), engine)
}

/// A service that learns, with the same random numbers in every run.
fn learning(engine: ScriptedEngine) -> AskService {
    let service = RoutingService::new(Database::in_memory(HOB_MIGRATIONS).unwrap(), None);
    let drawn = Mutex::new(fastrand::Rng::with_seed(7));
    let draw_fn: DrawFn = Arc::new(move || RandomDraw::new(drawn.lock().unwrap().f64()));
    system(engine, None).0.with_router(Router::new(PolicyName::Grpo, service).with_draws(draw_fn))
}

/// What the router learned, after everything is written.
async fn learnt(system: &AskService) -> Knowledge {
    let service = system.router().service();
    service.clone().close().await;
    service.find().unwrap().unwrap().knowledge().unwrap()
}

fn failing(model: &'static str) -> ScriptedEngine {
    failing_so(model, || EngineError::Interrupted {
        engine: "scripted".into(),
        reason: "it fell over".into(),
    })
}

fn failing_so(model: &'static str, error: fn() -> EngineError) -> ScriptedEngine {
    let script = move |request: &GenerateRequest| {
        if request.model == model {
            return vec![Err(error())];
        }
        vec![
            Ok(Delta::text("yes")),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage: Some(Usage::default()) }),
        ]
    };
    ScriptedEngine::new(script).with_models(&[LARGE, SMALL])
}

#[tokio::test]
async fn auto_uses_the_suitable_model_and_reports_the_reason() {
    let (system, engine) = system(engine(), None);
    let plain = system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap();
    assert_eq!(plain.generation.model, SMALL);
    let why = "heuristic: the question is short and simple, so the smallest of 2 models";
    assert_eq!(plain.reason.unwrap().as_str(), why);

    let streaming = system.stream(asking("auto", "What is 17 * 23?"), &run("2")).await.unwrap();
    assert_eq!(streaming.model, LARGE);
    let why = "heuristic: it is about mathematics, so the largest of 2 models";
    assert_eq!(streaming.reason.unwrap().as_str(), why);
    let asked: Vec<String> = engine.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(asked, [SMALL, LARGE]);
}

#[tokio::test]
async fn auto_works_with_agents() {
    let (system, engine) = system(engine(), None);
    let by_agent = Caller::trusted(RequestSource::Server, "run");
    let answer = system.complete(asking("auto", "Hello there"), &by_agent).await.unwrap();
    assert_eq!((answer.generation.model.as_str(), answer.reason.is_some()), (SMALL, true));
    assert_eq!(engine.requests()[0].model, SMALL);
}

#[tokio::test]
async fn requests_without_a_model_use_auto_only_if_configured() {
    let (plain, engine) = system(engine(), None);
    assert!(plain.complete(asking("default", "Hello there"), &run("1")).await.unwrap().reason.is_none());
    assert_eq!(engine.requests()[0].model, LARGE, "the first of the engine");

    let (service, engine) = system(self::engine(), Some("auto"));
    let answer = service.complete(asking("default", "Hello there"), &run("2")).await.unwrap();
    assert_eq!((engine.requests()[0].model.as_str(), answer.reason.is_some()), (SMALL, true));
    assert_eq!(service.steady_model().await.unwrap().as_deref(), Some(LARGE));
}

#[tokio::test]
async fn a_requested_model_is_never_replaced() {
    let (system, engine) = system(engine(), Some("auto"));
    let answer = system.complete(asking(LARGE, "Hello there"), &run("1")).await.unwrap();
    assert_eq!((answer.reason, engine.requests()[0].model.as_str()), (None, LARGE));
    let unknown = system.complete(asking("automatic", "Hello there"), &run("2")).await.unwrap_err();
    assert!(matches!(unknown, AskError::Engine(EngineError::ModelNotFound { .. })), "{unknown}");
}

#[tokio::test]
async fn an_engines_own_model_named_auto_has_priority() {
    let (system, engine) = system(engine().with_models(&["auto", SMALL]), None);
    let answer = system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap();
    assert_eq!((answer.reason, engine.requests()[0].model.as_str()), (None, "auto"));
}

#[tokio::test]
async fn auto_without_a_suitable_model_is_an_error() {
    let (system, _engine) = system(ScriptedEngine::saying(&[]).with_models(&["nomic-embed-text"]), None);
    let refused = system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap_err();
    let expected = "'auto' leaves the choice of a model to Hob, but scripted has none that can answer. ";
    assert!(refused.to_string().starts_with(expected), "{refused}");
}

#[tokio::test]
async fn a_failing_model_is_chosen_less_often() {
    let system = learning(failing(LARGE));
    for number in 0..60 {
        let question = format!("Tell me about number {number}");
        let _ = system.complete(asking("auto", &question), &run(&number.to_string())).await;
        // The next choice uses what was learned.
        system.router().service().clone().close().await;
    }
    let knowledge = learnt(&system).await;
    let record = knowledge.values().next().unwrap();
    assert_eq!(knowledge.len(), 1);
    let (small, large) = (record.models[SMALL], record.models[LARGE]);
    assert_eq!((large.mean_reward(), small.samples + large.samples), (Some(0.0), 60));
    assert!(small.samples > 45 && small.weight > 1.0, "{small:?} {large:?}");
}

fn refused(status: u16) -> EngineError {
    let engine = "scripted".to_owned();
    EngineError::Refused { engine, status, message: "no".into(), code: None, param: None, retry_after: None }
}

/// How many of 40 questions went to the model that answers.
async fn asked_among_40(system: &AskService) -> u64 {
    for number in 0..40 {
        let question = format!("Tell me about number {number}");
        let _ = system.complete(asking("auto", &question), &run(&number.to_string())).await;
        system.router().service().clone().close().await;
    }
    learnt(system).await.values().map(|record| record.models[SMALL].tries).sum()
}

#[tokio::test]
async fn failures_without_a_reward_do_not_keep_a_model_exploring() {
    let away = || EngineError::Unreachable {
        engine: "scripted".into(),
        address: String::new(),
        reason: "it is away".into(),
    };
    for error in [away, || refused(429)] {
        let asked = asked_among_40(&learning(failing_so(LARGE, error))).await;
        assert!(asked >= 12, "{}: {asked} of 40", error());
    }
}

#[tokio::test]
async fn a_model_that_refuses_questions_is_chosen_less_often() {
    let unsupported =
        || EngineError::Unsupported { engine: "scripted".into(), field: "tools".into(), hint: None };
    for error in [unsupported, || refused(400), || refused(404)] {
        let system = learning(failing_so(LARGE, error));
        let asked = asked_among_40(&system).await;
        assert!(asked >= 28, "{}: {asked} of 40", error());
        let knowledge = learnt(&system).await;
        assert_eq!(knowledge.values().next().unwrap().models[LARGE].mean_reward(), Some(0.0));
    }
}

#[tokio::test]
async fn cancelled_answers_do_not_keep_a_model_exploring() {
    let system = learning(failing("none"));
    for number in 0..40 {
        let question = format!("Tell me about number {number}");
        let streaming = system.stream(asking("auto", &question), &run(&number.to_string())).await.unwrap();
        if streaming.model == SMALL {
            let _heard: Vec<_> = streaming.deltas.collect().await;
        }
        system.router().service().clone().close().await;
    }
    let knowledge = learnt(&system).await;
    let record = knowledge.values().next().unwrap();
    assert_eq!(record.models[LARGE].samples, 0);
    assert!(record.models[SMALL].samples >= 12, "{record:?}");
}

#[tokio::test]
async fn a_complete_stream_gives_a_reward_and_a_cancelled_one_does_not() {
    let system = learning(failing("none"));
    let mut heard = system.stream(asking("auto", "Hello there"), &run("1")).await.unwrap().deltas;
    while heard.next().await.is_some() {}
    drop(system.stream(asking("auto", "Good day to you"), &run("2")).await.unwrap());
    let samples = |knowledge: &Knowledge| -> u64 {
        knowledge.values().flat_map(|record| record.models.values()).map(|known| known.samples).sum()
    };
    assert_eq!(samples(&learnt(&system).await), 1);

    let broken = learning(failing(SMALL));
    for number in 0..8 {
        let question = format!("Tell me about number {number}");
        if let Ok(mut streaming) = broken.stream(asking("auto", &question), &run(&number.to_string())).await {
            while streaming.deltas.next().await.is_some() {}
        }
    }
    let knowledge = learnt(&broken).await;
    let record = knowledge.values().next().unwrap();
    assert_eq!(record.models[SMALL].mean_reward(), Some(0.0));
    assert_eq!(record.models[SMALL].samples + record.models[LARGE].samples, 8);
}

#[tokio::test]
async fn a_rating_applies_to_its_answer_and_counts_more_than_other_signals() {
    let system = learning(failing("none"));
    let answered = system.complete(asking("auto", "Hello there"), &run("chatcmpl-1")).await.unwrap();
    let feedback = system.feedback().clone();
    let rate = |run: Option<&'static str>, rating| {
        let feedback = feedback.clone();
        async move { tokio::task::spawn_blocking(move || feedback.rate(run, rating)).await.unwrap() }
    };
    let rated = rate(Some("chatcmpl-1"), Rating::Bad).await.unwrap();
    assert_eq!((rated.answer.model.as_str(), rated.learnt), (answered.generation.model.as_str(), true));
    let reward = |knowledge: &Knowledge| {
        let models = knowledge.values().flat_map(|record| record.models.values());
        models.filter_map(|known| known.mean_reward()).next().unwrap()
    };
    let after_blame = reward(&learnt(&system).await);
    assert!(after_blame < 0.1, "{after_blame}");
    rate(Some("chatcmpl-1"), Rating::Bad).await.unwrap();
    assert_eq!(reward(&learnt(&system).await), after_blame, "saying it twice changes nothing");
    let last = rate(None, Rating::Good).await.unwrap();
    assert_eq!(last.answer.run, "chatcmpl-1");
    let after_praise = reward(&learnt(&system).await);
    assert!((after_praise - 0.96).abs() < 1e-9, "as if the blame had never been: {after_praise}");
    let unknown = rate(Some("chatcmpl-2"), Rating::Good).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no answer 'chatcmpl-2' of the last days");
}

#[tokio::test]
async fn a_repeated_question_lowers_the_reward() {
    let system = learning(failing("none"));
    system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap();
    let (retried, before) = kept(&system, "1").await;
    assert!(!retried);
    system.complete(asking("auto", "hello  there"), &run("2")).await.unwrap();
    let (retried, after) = kept(&system, "1").await;
    assert!(retried && after < before, "{before:?} {after:?}");
}

#[tokio::test]
async fn the_same_question_from_another_source_does_not_lower_the_reward() {
    let system = learning(failing("none"));
    system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap();
    let before = kept(&system, "1").await;
    let elsewhere = Caller { source: RequestSource::Channel, ..run("2") };
    system.complete(asking("auto", "Hello there"), &elsewhere).await.unwrap();
    assert_eq!(kept(&system, "1").await, before);
}

#[tokio::test]
async fn a_repeated_question_does_not_change_a_good_rating() {
    let system = learning(failing("none"));
    system.complete(asking("auto", "Hello there"), &run("1")).await.unwrap();
    let feedback = system.feedback().clone();
    tokio::task::spawn_blocking(move || feedback.rate(Some("1"), Rating::Good).unwrap()).await.unwrap();
    let praised = kept(&system, "1").await.1;
    system.complete(asking("auto", "Hello there"), &run("2")).await.unwrap();
    assert_eq!(kept(&system, "1").await, (true, praised));
}

#[tokio::test]
async fn a_repeating_task_does_not_lower_the_reward() {
    let system = learning(failing("none"));
    let task = |name: &str| Caller { source: RequestSource::Scheduler, ..run(name) };
    system.complete(asking("auto", "Hello there"), &task("1")).await.unwrap();
    let before = kept(&system, "1").await;
    system.complete(asking("auto", "Hello there"), &task("2")).await.unwrap();
    assert_eq!(kept(&system, "1").await, before);
}

#[tokio::test]
async fn tool_results_are_not_a_repeated_question() {
    let system = learning(failing("none"));
    let mut request = asking("auto", "Hello there");
    system.complete(request.clone(), &run("1")).await.unwrap();
    let before = kept(&system, "1").await;
    for number in 2..4 {
        request.messages.extend([Message::new(Role::Assistant, ""), Message::new(Role::Tool, "4")]);
        system.complete(request.clone(), &run(&number.to_string())).await.unwrap();
    }
    assert_eq!((kept(&system, "1").await, kept(&system, "2").await.0), (before, false));
}

/// Whether the question of a run was repeated, and the reward of its answer.
async fn kept(system: &AskService, run: &str) -> (bool, Option<f64>) {
    let service = system.router().service();
    service.clone().close().await;
    let mut found = None;
    let routing = service.find().unwrap().unwrap();
    assert!(routing.learn(run, &mut |kept, _| found = Some((kept.retried, kept.reward))).unwrap());
    found.unwrap()
}

#[tokio::test]
async fn auto_does_not_use_the_cloud_while_a_local_engine_answers() {
    let local = engine();
    let cloud = Arc::new(ScriptedEngine::saying(&["yes"]).called(CLOUD).with_models(&["gpt:900b", SMALL]));
    let shared = || Arc::clone(&cloud) as Arc<dyn Engine>;
    let (system, local) = system(local, None);
    let pool = EnginePool::new(Arc::clone(&local) as Arc<dyn Engine>, vec![shared()]);
    // The setting allows the cloud only if no local engine can answer.
    let fallback = Fallback::new("gpt:900b", Some(shared()));
    let system = system.with_pool(Arc::new(pool)).with_fallback(Some(fallback));
    for (question, expected) in [("What is 17 * 23?", LARGE), ("Hello there", SMALL)] {
        let answer = system.complete(asking("auto", question), &run("1")).await.unwrap();
        assert_eq!((answer.engine.as_str(), answer.generation.model.as_str()), ("scripted", expected));
        assert!(answer.generation.warnings.is_empty());
    }
    assert!(cloud.requests().is_empty());
}

/// vLLM has the large model and stops after one answer; Ollama has the fallback model.
async fn handing_over(stand_in: ScriptedEngine) -> AskService {
    let vllm = Arc::new(ScriptedEngine::saying(&["yes"]).called("vllm").with_models(&[LARGE]));
    let shared = || Arc::clone(&vllm) as Arc<dyn Engine>;
    let ollama = Arc::new(stand_in.called("ollama").with_models(&[SMALL])) as Arc<dyn Engine>;
    let service = RoutingService::new(Database::in_memory(HOB_MIGRATIONS).unwrap(), None);
    let system = system(engine(), None).0.with_pool(Arc::new(EnginePool::new(shared(), vec![ollama])));
    let system = system
        .with_fallback(Some(Fallback::new(SMALL, None)))
        .with_router(Router::new(PolicyName::Heuristic, service));
    let answer = system.complete(asking("auto", "What is 17 * 23?"), &run("first")).await.unwrap();
    assert_eq!(answer.generation.model, LARGE);
    vllm.set_gone(true);
    system
}

#[tokio::test]
async fn a_fallback_answer_gives_the_chosen_model_no_reward() {
    let system = handing_over(ScriptedEngine::saying(&["yes"])).await;
    let answer = system.complete(asking("auto", "What is 18 * 23?"), &run("whole")).await.unwrap();
    assert_eq!(answer.generation.model, SMALL);
    let streaming = system.stream(asking("auto", "What is 19 * 23?"), &run("streamed")).await.unwrap();
    assert_eq!(streaming.model, SMALL);
    let _heard: Vec<_> = streaming.deltas.collect().await;
    let knowledge = learnt(&system).await;
    let known = knowledge.values().next().unwrap().models[LARGE];
    assert_eq!((known.tries, known.samples), (3, 1));
    let feedback = system.feedback().clone();
    let rated = tokio::task::spawn_blocking(move || {
        let unknown = feedback.rate(Some("whole"), Rating::Bad).unwrap_err();
        assert!(matches!(unknown, RateError::NoSuchAnswer { .. }), "{unknown}");
        feedback.rate(None, Rating::Good).unwrap()
    });
    assert_eq!(rated.await.unwrap().answer.run, "first");
}

#[tokio::test]
async fn a_failing_fallback_is_not_the_chosen_models_failure() {
    let broken = ScriptedEngine::new(|_: &GenerateRequest| {
        vec![Err(EngineError::Interrupted { engine: "ollama".into(), reason: "it fell over".into() })]
    });
    let system = handing_over(broken).await;
    assert!(system.stream(asking("auto", "What is 18 * 23?"), &run("streamed")).await.is_err());
    let knowledge = learnt(&system).await;
    assert_eq!(knowledge.values().next().unwrap().models[LARGE].samples, 1);
}

#[tokio::test]
async fn a_failed_answer_is_not_the_last_answer() {
    let system = learning(failing(LARGE));
    let mut answered = Vec::new();
    for number in 0..8 {
        let name = number.to_string();
        let question = format!("Tell me about number {number}");
        let answer = system.complete(asking("auto", &question), &run(&name)).await;
        system.router().service().clone().close().await;
        if answer.is_ok() {
            answered.push(name);
            continue;
        }
        let Some(last) = answered.last().cloned() else { continue };
        let feedback = system.feedback().clone();
        let rated =
            tokio::task::spawn_blocking(move || feedback.rate(None, Rating::Good).unwrap()).await.unwrap();
        assert_eq!(rated.answer.run, last);
        return;
    }
    panic!("none failed after another had answered");
}

#[tokio::test]
async fn failed_tool_calls_lower_the_reward() {
    // Calls an unknown tool, then answers.
    let script = |request: &GenerateRequest| {
        let used = request.messages.iter().any(|message| message.role == Role::Tool);
        let call = ToolCallDelta {
            id: Some("c".into()),
            name: Some("nonsense".into()),
            arguments: "{}".into(),
            ..ToolCallDelta::default()
        };
        let (piece, reason) = match used {
            true => (Delta::text("yes"), FinishReason::Stop),
            false => (Delta::ToolCall(call), FinishReason::ToolCalls),
        };
        vec![Ok(piece), Ok(Delta::Finish { choice: 0, reason }), Ok(Delta::Done { usage: None })]
    };
    let system = learning(ScriptedEngine::new(script).with_models(&[SMALL, LARGE]));
    let agent = AgentPreference::Named("orchestrator".into());
    let caller = Caller { agent, ..run("1") };
    let answer = system.complete(asking("auto", "Hello there"), &caller).await.unwrap();
    assert!(answer.tool_results.iter().any(|result| !result.success));
    let knowledge = learnt(&system).await;
    let mut rewards = knowledge.values().flat_map(|record| &record.recent);
    assert!(rewards.next().is_some_and(|reward| *reward < 0.4), "{knowledge:?}");
}
