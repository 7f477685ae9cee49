use async_trait::async_trait;
use futures::StreamExt;
use hob_core::{
    AgentContext, AgentOutcome, AskError, Caller, CallerRole, Delta, EmbedRequest, GenerateRequest, Message,
    RequestSource, Role, ToolDefinition,
};
use hob_telemetry::NoInferenceLog;
use hob_testkit::ScriptedEngine;

use super::*;

struct Butler;

#[async_trait]
impl Agent for Butler {
    fn name(&self) -> &str {
        "butler"
    }

    async fn run(
        &self,
        request: &GenerateRequest,
        context: &AgentContext,
    ) -> Result<AgentOutcome, EngineError> {
        let mut generation = context.engine.generate(request).await?;
        generation.answer.content = format!("Sir, {}", generation.answer.content);
        Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
    }
}

fn system(engine: ScriptedEngine, agent: Option<Arc<dyn Agent>>) -> (AskService, Arc<ScriptedEngine>) {
    let engine = Arc::new(engine);
    let parts = AskServiceParts {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        default_model: None,
        agent,
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    };
    (AskService::new(parts), engine)
}

fn caller() -> Caller {
    Caller::trusted(RequestSource::Server, "run")
}

fn asking(model: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, "hi")],
        ..GenerateRequest::default()
    }
}

#[tokio::test]
async fn the_agent_answers_complete_requests_without_the_callers_tools() {
    let (system, _engine) = system(ScriptedEngine::saying(&["dinner ", "is served"]), Some(Arc::new(Butler)));
    let answer = system.complete(asking("m"), &caller()).await.unwrap().generation.answer.content;
    assert_eq!(answer, "Sir, dinner is served");

    let tool = ToolDefinition { name: "f".into(), description: None, parameters: None, strict: None };
    let with_tools = GenerateRequest { tools: vec![tool], ..asking("m") };
    assert_eq!(
        system.complete(with_tools, &caller()).await.unwrap().generation.answer.content,
        "dinner is served"
    );
}

#[tokio::test]
async fn configured_defaults_apply_to_values_that_the_caller_omits() {
    let (system, engine) = system(ScriptedEngine::saying(&["yes"]), Some(Arc::new(Butler)));
    let defaults = AnswerDefaults { temperature: hob_core::Temperature::new(0.2).ok(), max_tokens: None };
    let system = AskService { defaults, ..system };
    // With an agent, and directly.
    system.complete(asking("m"), &caller()).await.unwrap();
    system.stream(asking("m"), &caller()).await.unwrap();
    let own = GenerateRequest { max_tokens: hob_core::MaxTokens::new(5).ok(), ..asking("m") };
    system.stream(own, &caller()).await.unwrap();
    let asked: Vec<_> =
        engine.requests().iter().map(|request| (request.temperature(), request.max_tokens())).collect();
    assert_eq!(asked, [(Some(0.2), None), (Some(0.2), None), (Some(0.2), Some(5))]);
}

#[tokio::test]
async fn a_failure_before_the_first_piece_is_an_error_and_not_a_stream() {
    let broken = ScriptedEngine::new(|_| {
        vec![Err(EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() })]
    });
    let error = system(broken, None).0.stream(asking("m"), &caller()).await.err().unwrap();
    assert_eq!(error.to_string(), "scripted broke off its answer: cable");

    let silent = ScriptedEngine::new(|_| Vec::new());
    let error = system(silent, None).0.stream(asking("m"), &caller()).await.err().unwrap();
    assert_eq!(error.to_string(), "scripted broke off its answer: it ended before it began");
}

#[tokio::test]
async fn awaiting_the_first_piece_loses_nothing() {
    let (system, _engine) = system(ScriptedEngine::saying(&["a", "b", "c"]), None);
    let deltas: Vec<Delta> =
        system.stream(asking("m"), &caller()).await.unwrap().deltas.map(Result::unwrap).collect().await;
    assert_eq!(deltas[..3], [Delta::text("a"), Delta::text("b"), Delta::text("c")]);
    assert_eq!(deltas.len(), 5);
}

#[tokio::test]
async fn default_means_the_first_model_of_the_engine() {
    let (system, engine) = system(ScriptedEngine::saying(&["hi"]).with_models(&["big", "small"]), None);
    system.complete(asking("default"), &caller()).await.unwrap();
    assert_eq!(engine.requests()[0].model, "big");
}

#[tokio::test]
async fn an_unknown_model_is_never_replaced_by_another() {
    let (system, engine) = system(ScriptedEngine::saying(&["hi"]), None);
    let error = system.complete(asking("gpt-4"), &caller()).await.unwrap_err();
    assert!(matches!(error, AskError::Engine(EngineError::ModelNotFound { .. })), "{error}");
    assert_eq!(engine.requests(), []);
}

#[tokio::test]
async fn default_never_means_a_model_that_cannot_answer() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["small"]).with_embedding_models(&["minilm"]);
    let (system, engine) = system(engine, None);
    system.complete(asking("default"), &caller()).await.unwrap();
    assert_eq!(engine.requests()[0].model, "small");
}

#[tokio::test]
async fn texts_are_embedded_by_the_default_embedder_or_the_named_model() {
    let embedding_engine = Arc::new(ScriptedEngine::saying(&[]).with_embedding_models(&["minilm"]));
    let (system, engine) = system(ScriptedEngine::saying(&[]).with_embedding_models(&["other"]), None);
    let system = system.with_embedder(Some(Embedder {
        engine: Arc::clone(&embedding_engine) as Arc<dyn Engine>,
        model: "minilm".into(),
    }));
    let caller = caller();
    let embed = |model: &str| {
        let request = EmbedRequest {
            model: model.into(),
            inputs: vec!["a".to_owned()].into(),
            ..EmbedRequest::default()
        };
        system.embed(request, &caller)
    };
    for model in ["default", "minilm", "other"] {
        let named = if model == "default" { "minilm" } else { model };
        assert_eq!(embed(model).await.unwrap().model, named);
    }
    assert_eq!((embedding_engine.embed_requests().len(), engine.embed_requests().len()), (2, 1));
    let error = embed("nope").await.unwrap_err();
    assert!(matches!(error, AskError::Engine(EngineError::ModelNotFound { .. })), "{error}");
}

#[tokio::test]
async fn an_alias_of_a_missing_model_is_named_also_if_no_answer_is_wanted() {
    let (system, _engine) = system(ScriptedEngine::saying(&["hi"]), None);
    let aliases = [("bge".to_owned(), "gone".to_owned())].into();
    let system = system.with_aliases(ModelAliases::new(&aliases));
    let embed =
        EmbedRequest { model: "bge".into(), inputs: vec!["a".to_owned()].into(), ..EmbedRequest::default() };
    let rerank =
        hob_core::RerankRequest { model: "bge".into(), query: "q".into(), documents: vec!["a".into()] };
    let errors = [
        system.embed(embed, &caller()).await.err(),
        system.rerank(rerank, &caller()).await.err(),
        system.count_tokens(asking("bge"), &caller()).await.err(),
        system.load_model("bge", CallerRole::Owner).await.err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(AskError::NoAliasTarget { .. })), "{error:?}");
    }
}

#[cfg(feature = "embedded")]
#[tokio::test]
async fn reranking_without_the_default_embedding_model_says_how_to_get_it() {
    let home = tempfile::tempdir().unwrap();
    let (system, engine) = system(ScriptedEngine::saying(&["hi"]), None);
    let engine: Arc<dyn Engine> = engine;
    let embedder = crate::startup::embedder::embedder(&hob_config::Config::default(), home.path(), &engine);
    let request =
        hob_core::RerankRequest { model: "default".into(), query: "q".into(), documents: vec!["a".into()] };
    let error = system.with_embedder(embedder).rerank(request, &caller()).await.unwrap_err();
    assert!(matches!(error, AskError::Engine(EngineError::NotConfigured { .. })), "{error}");
    assert!(error.to_string().contains("'hob model pull all-minilm-l6-v2'"), "{error}");
}
