//! What the memory adds to questions, and for whom.

use std::sync::Mutex;

use hob_core::tool::MEMORY_SEARCH_TOOLS;
use hob_core::{
    AgentPreference, Caller, CallerRole, CollectionName, CollectionSet, Engine, Event, GenerateRequest,
    KeyGrant, KeyRing, MemoryUse, Message, Permit, Reach, RequestSource, Role,
};
use hob_memory::{IndexRequest, Note};
use hob_telemetry::NoInferenceLog;
use hob_testkit::{ScriptedEngine, member_grant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::databases::MEMORY_DATABASE;
use crate::{AskService, AskServiceParts, Databases};
use hob_agents::ToolSet;

/// Hob's home directory, and the notes beside it.
const HOME: &str = "home";

struct TestSetup {
    root: tempfile::TempDir,
    bus: EventBus,
    engine: Arc<ScriptedEngine>,
    system: AskService,
}

impl TestSetup {
    async fn new(config: &Config) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(HOME)).unwrap();
        let bus = EventBus::new();
        let memory = open_memory(
            config,
            &root.path().join(HOME),
            Databases::in_files(&root.path().join(HOME)).memory,
            MemoryWiring { bus: bus.clone(), ..MemoryWiring::default() },
        )
        .unwrap();
        let engine = Arc::new(ScriptedEngine::saying(&["yes"]));
        let system = AskService::new(AskServiceParts {
            engine: Arc::clone(&engine) as Arc<dyn Engine>,
            default_model: None,
            agent: hob_agents::agent("simple"),
            tools: ToolSet::default(),
            max_turns: 3,
            bus: bus.clone(),
            log: Arc::new(NoInferenceLog),
        });
        TestSetup { system: system.with_memory(memory), root, bus, engine }
    }

    async fn with_note(config: &Config) -> Self {
        let setup = Self::new(config).await;
        let note = setup.root.path().join("gate.md");
        std::fs::write(&note, "# Garden gate\n\nThe code of the gate is 4711.").unwrap();
        setup.system.memory().unwrap().index(&note).await.unwrap();
        setup
    }

    /// The messages of the last request to the engine.
    fn last_messages(&self) -> Vec<Message> {
        self.engine.requests().last().expect("it was asked").messages.clone()
    }

    async fn ask(&self, caller: &Caller) {
        self.system.complete(question(), caller).await.unwrap();
    }
}

fn question() -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, "What is the code of the gate?")],
        ..GenerateRequest::default()
    }
}

fn owner() -> Caller {
    Caller::trusted(RequestSource::Server, "run-7")
}

#[tokio::test]
async fn an_agent_gets_passages_with_their_sources() {
    let setup = TestSetup::with_note(&Config::default()).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&heard);
    let _subscription = setup.bus.subscribe(move |happening| {
        if let Event::MemoryRetrieve { .. } = happening.event {
            writer.lock().unwrap().push((happening.run.to_string(), happening.event.data()));
        }
    });
    setup.ask(&owner()).await;
    let messages = setup.last_messages();
    assert_eq!(messages.iter().map(|message| message.role).collect::<Vec<_>>(), [Role::User]);
    let text = messages[0].content.text();
    assert!(text.contains("gate.md:1") && text.contains("4711"), "{text}");
    assert!(text.ends_with("</documents>\n\nWhat is the code of the gate?"), "{text}");
    let expected = serde_json::json!({
        "backend": "sqlite", "query": "What is the code of the gate?", "results": 1
    });
    assert_eq!(*heard.lock().unwrap(), [("run-7".to_owned(), expected)]);
}

#[tokio::test]
async fn strangers_and_plain_engine_requests_get_no_passages() {
    let setup = TestSetup::with_note(&Config::default()).await;
    setup.ask(&Caller { permit: Permit::up_to(Reach::Pure), ..owner() }).await;
    assert_eq!(setup.last_messages(), question().messages);
    setup.ask(&Caller { agent: AgentPreference::None, ..owner() }).await;
    assert_eq!(setup.last_messages(), question().messages);
}

/// Members, each with a key that may read one collection.
struct Members;

impl KeyRing for Members {
    fn grant(&self, name: &str, _rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        let memory = match name {
            "without" => CollectionSet::none(),
            collection => CollectionSet::of(CollectionName::parse(collection).unwrap()),
        };
        Some(Arc::new(KeyGrant { memory, ..member_grant(name) }))
    }
}

#[tokio::test]
async fn a_task_of_a_key_gets_passages_of_its_collections_and_an_allowed_channel_sender_of_all() {
    let mut setup = TestSetup::with_note(&Config::default()).await;
    setup.system = setup.system.with_keys(Arc::new(Members));
    let shared = setup.root.path().join("shared.md");
    std::fs::write(&shared, "# Garden gate\n\nThe code of the gate is 2222.").unwrap();
    let indexing = IndexRequest {
        backend: Some(MemoryBackend::Sqlite),
        collection: CollectionName::parse("team").unwrap(),
        listener: Arc::new(|_| {}),
        stop: CancellationToken::new(),
    };
    setup.system.memory().unwrap().index_with(&shared, indexing).await.unwrap();
    let asked = async |caller: Caller| {
        setup.ask(&caller).await;
        let text = setup.last_messages()[0].content.text().into_owned();
        ["4711", "2222"].map(|code| text.contains(code))
    };
    // The key decides at each run, whatever is stored with the task.
    let task = |key: &str| Caller {
        permit: Permit { key: Some(key.into()), ..Permit::up_to(Reach::Act) },
        ..Caller::trusted(RequestSource::Scheduler, "task-1")
    };
    assert_eq!(asked(task("team")).await, [false, true]);
    assert_eq!(asked(task("default")).await, [true, false]);
    assert_eq!(asked(task("without")).await, [false, false]);
    let selected = Permit { only: Some(Vec::new()), ..task("team").permit };
    assert_eq!(asked(Caller { permit: selected, ..task("team") }).await, [false, false]);
    let sender = |permit: Permit| Caller {
        role: CallerRole::ChannelSender,
        permit,
        ..Caller::trusted(RequestSource::Channel, "channel-1")
    };
    let also = MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec();
    assert_eq!(asked(sender(Permit { also, ..Permit::up_to(Reach::Pure) })).await, [true, true]);
    assert_eq!(asked(sender(Permit::up_to(Reach::Pure))).await, [false, false]);
}

#[tokio::test]
async fn memory_can_be_disabled_by_configuration_or_caller() {
    let mut config = Config::default();
    config.memory.context = false;
    let setup = TestSetup::with_note(&config).await;
    setup.ask(&owner()).await;
    assert_eq!(setup.last_messages(), question().messages);

    let setup = TestSetup::with_note(&Config::default()).await;
    setup.ask(&Caller { memory: MemoryUse::Unwanted, ..owner() }).await;
    assert_eq!(setup.last_messages(), question().messages);
}

#[tokio::test]
async fn used_passages_are_reported_and_added_only_once() {
    let setup = TestSetup::with_note(&Config::default()).await;
    let mut request = question();
    let passages = setup.system.recall(&mut request, &owner()).await;
    assert_eq!(passages.len(), 1);
    assert!(passages[0].text.contains("4711"));
    let once = request.clone();
    assert!(setup.system.recall(&mut request, &owner()).await.is_empty());
    assert_eq!(request, once);
}

#[tokio::test]
async fn without_vectors_a_hybrid_memory_searches_by_words() {
    let mut config = Config::default();
    config.memory.backend = MemoryBackendName::Hybrid;
    let setup = TestSetup::new(&config).await;
    let memory = setup.system.memory().unwrap();
    memory.store(Note { title: None, text: "The code of the gate is 4711.".into() }).await.unwrap();
    setup.ask(&owner()).await;
    assert!(setup.last_messages()[0].content.text().contains("4711"));
}

#[tokio::test]
async fn an_empty_memory_changes_no_answer_and_creates_no_database() {
    let setup = TestSetup::new(&Config::default()).await;
    setup.ask(&owner()).await;
    assert_eq!(setup.last_messages(), question().messages);
    assert!(!setup.root.path().join(HOME).join(MEMORY_DATABASE).exists());
}

#[tokio::test]
async fn hob_never_indexes_its_own_files() {
    let setup = TestSetup::new(&Config::default()).await;
    let own = setup.root.path().join(HOME).join("config.toml");
    std::fs::write(&own, "api_key = \"the code of the gate is 4711\"").unwrap();
    for path in [setup.root.path(), own.as_path()] {
        let report = setup.system.memory().unwrap().index(path).await.unwrap();
        assert_eq!(report.indexed, 0, "{}", path.display());
    }
    setup.ask(&owner()).await;
    assert_eq!(setup.last_messages(), question().messages);
}
