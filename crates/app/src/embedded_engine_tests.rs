use std::time::Duration;

use hob_agents::ToolSet;
use hob_config::Config;
use hob_core::{Caller, EventBus, GenerateRequest, Message, ReadinessCheck, RequestSource, Role};
use hob_engines::pool::EnginePool;
use hob_telemetry::NoInferenceLog;
use hob_testkit::ScriptedEngine;
use tempfile::TempDir;

use super::*;
use crate::AskServiceParts;

/// A server whose engine `ollama` is away, and an embedded engine with models.
struct Fixture {
    _home: TempDir,
    ollama: Arc<ScriptedEngine>,
    inside: Arc<ScriptedEngine>,
    system: Arc<AskService>,
    embedded: Arc<EmbeddedEngine>,
}

impl Fixture {
    fn new(default_model: Option<&str>, only: Option<EngineName>) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let ollama = Arc::new(ScriptedEngine::saying(&["from ollama"]).called("ollama"));
        ollama.set_gone(true);
        let inside = ScriptedEngine::saying(&["from inside"]).called("embedded").with_models(&["a", "b"]);
        let inside = Arc::new(inside.with_embedding_models(&["vectors"]));
        let pool = Arc::new(EnginePool::new(Arc::clone(&ollama) as Arc<dyn Engine>, Vec::new()));
        let config = Config::default();
        let model_management =
            ModelManagement::open(&config, home.path(), Arc::clone(&pool)).expect("model management");
        let system = AskService::new(AskServiceParts {
            engine: Arc::clone(&ollama) as Arc<dyn Engine>,
            default_model: default_model.map(str::to_owned),
            agent: None,
            tools: ToolSet::default(),
            max_turns: 1,
            bus: EventBus::new(),
            log: Arc::new(NoInferenceLog),
        });
        let system = Arc::new(system.with_pool(pool));
        let embedded = EmbeddedEngine::new(EmbeddedEngineParts {
            system: Arc::clone(&system),
            model_management: Arc::new(model_management.offline()),
            engine: Some(Arc::clone(&inside) as Arc<dyn Engine>),
            only,
        });
        Fixture { _home: home, ollama, inside, system, embedded: Arc::new(embedded) }
    }

    /// The statuses of all steps, and the error of the last.
    async fn open(&self, model: &str) -> (Vec<String>, Option<String>) {
        let select: SelectEngineFn = Box::new(|loaded| {
            loaded.select();
            Ok(())
        });
        self.open_with(model, select).await
    }

    async fn open_with(&self, model: &str, select: SelectEngineFn) -> (Vec<String>, Option<String>) {
        let mut steps = match self.embedded.open(model, select).await {
            Ok(steps) => steps,
            Err(error) => return (Vec::new(), Some(error.to_string())),
        };
        let mut statuses = Vec::new();
        while let Some(step) = steps.next().await {
            match step {
                Ok(step) => statuses.push(step.status),
                Err(error) => return (statuses, Some(error.to_string())),
            }
        }
        (statuses, None)
    }

    async fn answer(&self) -> Result<(String, String), String> {
        let messages = vec![Message::new(Role::User, "Hello")];
        let request = GenerateRequest { model: "default".into(), messages, ..GenerateRequest::default() };
        let caller = Caller::trusted(RequestSource::Server, "test");
        let answered = self.system.complete(request, &caller).await.map_err(|error| error.to_string())?;
        Ok((answered.engine, answered.generation.model))
    }
}

#[tokio::test]
async fn the_first_question_is_answered_as_soon_as_the_engine_is_selected() {
    for configured in [None, Some("llama3:8b")] {
        let fixture = Fixture::new(configured, None);
        assert!(fixture.answer().await.is_err(), "the engine is away");
        let steps = ["loading b", "success"].map(str::to_owned).to_vec();
        assert_eq!(fixture.open("b").await, (steps, None));
        assert_eq!(fixture.answer().await, Ok(("embedded".into(), "b".into())), "{configured:?}");
        assert_eq!(fixture.inside.loaded(), ["load b"]);
        let listed = fixture.system.models().await.expect("a list");
        assert!(listed.iter().any(|model| model.id == "a"), "{listed:?}");
    }
}

#[tokio::test]
async fn what_can_be_chosen_are_the_models_that_answer() {
    let fixture = Fixture::new(None, None);
    let EmbeddedEngineState { is_selected, problem, models } = fixture.embedded.state().await;
    assert!(!is_selected && problem.is_none(), "{problem:?}");
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    fixture.open("a").await;
    assert!(fixture.embedded.state().await.is_selected);
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_or_saved_leaves_everything_as_it_was() {
    let fixture = Fixture::new(Some("llama3:8b"), None);
    fixture.inside.set_load_failure(Some("the model 'a' needs 9 GB of memory"));
    let (steps, error) = fixture.open("a").await;
    assert_eq!(steps, ["loading a"]);
    assert!(error.is_some_and(|error| error.contains("needs 9 GB of memory")));
    fixture.inside.set_load_failure(None);
    let refuse: SelectEngineFn = Box::new(|_| Err(SettingsError::TooLarge));
    assert!(fixture.open_with("a", refuse).await.1.is_some());
    for (model, reason) in [("vectors", "writes no answers"), ("none", "has no model 'none'")] {
        let (_, error) = fixture.open(model).await;
        assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{error:?}");
    }
    assert_eq!(fixture.system.engine().key(), "ollama");
    assert_eq!(fixture.system.pool().engines().count(), 1);
    assert_eq!(fixture.system.default_model().await.expect("configured").as_deref(), Some("llama3:8b"));
    fixture.ollama.set_gone(false);
    // The next attempt is not blocked by the failed ones.
    assert_eq!(fixture.open("a").await.1, None);
}

#[tokio::test]
async fn two_who_choose_at_the_same_time_take_turns_and_the_engine_is_added_once() {
    let fixture = Fixture::new(None, None);
    let (one, two) = tokio::join!(fixture.open("a"), fixture.open("b"));
    assert_eq!((one.1, two.1), (None, None));
    assert_eq!(fixture.system.pool().engines().count(), 2);
    let (engine, model) = fixture.answer().await.expect("an answer");
    let last = fixture.inside.loaded().pop().expect("a model was loaded");
    assert_eq!((engine.as_str(), format!("load {model}")), ("embedded", last), "the later choice holds");
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_model_is_loaded_changes_nothing() {
    let fixture = Fixture::new(None, None);
    let select: SelectEngineFn = Box::new(|_| panic!("nothing is selected"));
    let mut steps = fixture.embedded.open("a", select).await.expect("steps");
    assert!(steps.next().await.is_some_and(|step| step.is_ok()));
    drop(steps);
    assert_eq!(fixture.system.engine().key(), "ollama");
    assert_eq!(fixture.inside.loaded(), Vec::<String>::new());
}

#[tokio::test]
async fn a_model_of_the_list_that_is_not_on_the_disk_is_downloaded_first() {
    let fixture = Fixture::new(None, None);
    // These models are managed without the network.
    let (_, error) = fixture.open("qwen3:0.6b").await;
    assert!(error.as_ref().is_some_and(|error| error.contains("needs the network")), "{error:?}");
    assert_eq!(fixture.system.engine().key(), "ollama");
}

#[tokio::test]
async fn an_engine_that_is_missing_or_not_allowed_says_so() {
    let fixture = Fixture::new(None, Some(EngineName::Ollama));
    let (_, error) = fixture.open("a").await;
    assert!(error.as_ref().is_some_and(|error| error.contains("--engine ollama")), "{error:?}");
    let parts = EmbeddedEngineParts {
        system: Arc::clone(&fixture.system),
        model_management: Arc::clone(&fixture.embedded.parts.model_management),
        engine: None,
        only: None,
    };
    let problem = EmbeddedEngine::new(parts).state().await.problem.expect("a problem").to_string();
    assert!(problem.contains("built without the embedded engine"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waited_for_another_engine_is_ready() {
    let Fixture { _home, ollama, system, embedded, .. } = Fixture::new(None, None);
    let wait = Arc::new(EngineWait::start(Arc::clone(&ollama) as Arc<dyn Engine>));
    assert!(wait.problem().is_some());
    let loaded = LoadedEngine { wait: Some(Arc::clone(&wait)), ..embedded.load("a").await.expect("loaded") };
    loaded.select();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((wait.problem(), system.engine().key()), (None, "embedded"));
}
