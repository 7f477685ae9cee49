//! Agents and tasks of a key: they have its rights, spend from its budget, and end with it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hob_agents::ToolSet;
use hob_agents::builtin::{Llm, LlmOptions};
use hob_config::{Config, MemoryBackendName};
use hob_core::tool::OWNER_TOOLS;
use hob_core::{
    AgentPreference, AnswerDefaults, AskError, Caller, CallerRole, DetokenizeRequest, EmbedRequest, Engine,
    EngineError, EventBus, GenerateRequest, KeyGrant, KeyRing, LimitKind, Message, Permit, Reach,
    RequestSource, Role, TokenizeInput, TokenizeRequest, Tool,
};
use hob_db::Database;
use hob_engines::{DefaultModel, EnginePool};
use hob_keys::{
    AuditActor, KeyName, KeyOptions, KeyPatch, KeyRole, KeyService, MIGRATIONS, NewKey, SqliteKeyStore,
};
use hob_memory::Embedder;
use hob_telemetry::{Inference, InferenceLog, Recorder};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use crate::startup::embedder::charged;
use crate::startup::llm_tool::llm_tool;
use crate::startup::memory::{MemoryWiring, open_memory};
use crate::{AskService, AskServiceParts, Databases};

#[derive(Default)]
struct Remembered(Mutex<Vec<Inference>>);

impl InferenceLog for Remembered {
    fn record(&self, inference: Inference) {
        self.0.lock().unwrap().push(inference);
    }
}

struct Team {
    keys: Arc<KeyService>,
    log: Arc<Remembered>,
    system: AskService,
}

fn ana() -> KeyName {
    KeyName::parse("ana").unwrap()
}

/// A service with a member's key `ana`.
async fn team(rules: Value) -> Team {
    let store = SqliteKeyStore::new(Database::in_memory(&[MIGRATIONS]).unwrap());
    let keys = Arc::new(KeyService::new(KeyOptions::new(Arc::new(store))));
    let rules: KeyPatch = serde_json::from_value(rules).unwrap();
    let new = NewKey { name: ana(), role: KeyRole::Member, rules };
    keys.create(new, AuditActor::terminal()).await.unwrap();
    let log = Arc::new(Remembered::default());
    let engine: Arc<dyn Engine> = Arc::new(ScriptedEngine::saying(&["yes"]).with_models(&["m"]));
    let system = AskService::new(AskServiceParts {
        engine,
        default_model: None,
        agent: None,
        tools: ToolSet::default(),
        max_turns: 3,
        bus: EventBus::new(),
        log: Arc::clone(&log) as Arc<dyn InferenceLog>,
    });
    let system = system.with_keys(Arc::clone(&keys) as Arc<dyn KeyRing>);
    Team { keys, log, system }
}

/// A task that the key has created, as the scheduler runs it.
fn task() -> Caller {
    let permit = Permit { key: Some("ana".into()), ..Permit::up_to(Reach::Act) };
    Caller { permit, ..Caller::trusted(RequestSource::Scheduler, "task-1") }
}

fn question(max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, "hi")],
        max_tokens: hob_core::MaxTokens::new(max_tokens).ok(),
        ..GenerateRequest::default()
    }
}

async fn used(team: &Team) -> u64 {
    team.keys.show(&ana()).await.unwrap().1[0].used
}

#[tokio::test]
async fn a_task_spends_from_the_key_that_made_it_and_ends_with_it() {
    let team = team(json!({ "budgets": ["1k tokens/day"] })).await;
    team.system.complete(question(100), &task()).await.unwrap();
    let spent = used(&team).await;
    assert!(spent > 0);
    let recorded = team.log.0.lock().unwrap()[0].clone();
    assert_eq!(recorded.key.as_deref(), Some("ana"));
    assert_eq!(recorded.usage.prompt_tokens + recorded.usage.completion_tokens, spent);
    let refused = team.system.complete(question(5_000), &task()).await;
    let Err(AskError::Engine(EngineError::Limit(limit))) = refused else { panic!("{refused:?}") };
    assert_eq!(limit.kind, LimitKind::Budget);
    assert_eq!(team.log.0.lock().unwrap().len(), 1, "the engine was not asked");
    team.keys.revoke(&ana(), AuditActor::terminal()).await.unwrap();
    let refused = team.system.complete(question(1), &task()).await;
    assert!(matches!(refused, Err(AskError::KeyNotValid { .. })), "{refused:?}");
}

/// Keys that could not be read yet: only a look at the database finds them.
struct UnreadKeys(Arc<KeyService>);

#[async_trait]
impl KeyRing for UnreadKeys {
    fn grant(&self, _name: &str, _rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        None
    }

    async fn stored_grant(&self, name: &str, rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        self.0.grant(name, rule)
    }
}

#[tokio::test]
async fn a_task_does_not_fail_because_its_key_could_not_be_read_yet() {
    let Team { keys, system, .. } = team(json!({})).await;
    let system = system.with_keys(Arc::new(UnreadKeys(Arc::clone(&keys))));
    system.complete(question(100), &task()).await.unwrap();
    keys.revoke(&ana(), AuditActor::terminal()).await.unwrap();
    let refused = system.complete(question(100), &task()).await;
    assert!(matches!(refused, Err(AskError::KeyNotValid { .. })), "{refused:?}");
}

/// The tool `llm`, which asks the model `m` in the cloud.
async fn llm_of(team: &Team) -> (Arc<ScriptedEngine>, Llm) {
    let engine = Arc::new(ScriptedEngine::saying(&["yes"]).called("cloud").with_models(&["m"]));
    let pool = Arc::new(EnginePool::new(Arc::clone(&engine) as Arc<dyn Engine>, Vec::new()));
    let recorder = Recorder::to(Arc::clone(&team.log) as Arc<dyn InferenceLog>);
    let keys = Arc::clone(&team.keys) as Arc<dyn KeyRing>;
    let (_, options) = llm_tool(&pool, DefaultModel::new(None), &recorder, keys).await;
    let defaults =
        AnswerDefaults { max_tokens: hob_core::MaxTokens::new(50).ok(), ..AnswerDefaults::default() };
    (engine, Llm::new(LlmOptions { defaults, ..options }))
}

#[tokio::test]
async fn the_tool_that_asks_a_model_spends_from_the_key_of_its_run() {
    let team = team(json!({ "cloud": true, "budgets": ["1k tokens/day"] })).await;
    let (_, llm) = llm_of(&team).await;
    llm.call_for(json!({ "prompt": "hi" }), &task().permit).await.unwrap();
    assert!(used(&team).await > 0);
}

#[tokio::test]
async fn each_call_of_the_tool_that_asks_a_model_needs_the_present_rights_of_the_key() {
    let team = team(json!({ "cloud": true })).await;
    let (engine, llm) = llm_of(&team).await;
    let permit = task().permit;
    let ask = async || llm.call_for(json!({ "prompt": "hi" }), &permit).await;
    let change = async |patch: Value| {
        let patch: KeyPatch = serde_json::from_value(patch).unwrap();
        team.keys.patch(&ana(), patch, AuditActor::terminal()).await.unwrap();
    };
    ask().await.unwrap();
    for (taken, given_back, reason) in [
        (json!({ "models": ["small"] }), json!({ "models": null }), "may not use the model 'm'"),
        (json!({ "models": ["small"] }), json!({ "models": ["auto"] }), "may not use the model 'm'"),
        (json!({ "engines": ["vllm"] }), json!({ "engines": ["cloud"] }), "the engine cloud, which the key"),
        (
            json!({ "cloud": false }),
            json!({ "cloud": true }),
            "the engine cloud, which the key 'ana' may not",
        ),
        (json!({ "tools": ["think"] }), json!({ "tools": ["llm"] }), "may not use the tool 'llm'"),
    ] {
        change(taken.clone()).await;
        let refused = ask().await.unwrap_err().to_string();
        assert!(refused.contains(reason), "{taken}: {refused}");
        change(given_back).await;
        ask().await.unwrap();
    }
    assert_eq!(engine.requests().len(), 6, "a refused call does not reach the engine");
    team.keys.revoke(&ana(), AuditActor::terminal()).await.unwrap();
    let refused = ask().await.unwrap_err().to_string();
    assert!(refused.starts_with("the key 'ana' is not valid"), "{refused}");
    assert_eq!(engine.requests().len(), 6);
}

#[tokio::test]
async fn messages_of_a_channel_spend_from_the_key_of_the_channel() {
    let team = team(json!({ "budgets": ["1k tokens/day"], "models": ["m"] })).await;
    let sender = Caller {
        role: CallerRole::ChannelSender,
        permit: Permit { key: Some("ana".into()), tainted: true, ..Permit::up_to(Reach::Pure) },
        ..Caller::trusted(RequestSource::Channel, "channel-1")
    };
    team.system.complete(question(100), &sender).await.unwrap();
    // What the engine says: 3 tokens read, 1 written.
    assert_eq!(used(&team).await, 4);
    let recorded = team.log.0.lock().unwrap()[0].clone();
    assert_eq!((recorded.key.as_deref(), recorded.source), (Some("ana"), RequestSource::Channel));
    let refused = team.system.complete(question(5_000), &sender).await;
    assert!(matches!(refused, Err(AskError::Engine(EngineError::Limit(_)))), "{refused:?}");
    let other_model = GenerateRequest { model: "other".into(), ..question(1) };
    let refused = team.system.complete(other_model, &sender).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn a_key_without_the_cloud_gets_no_vectors_from_the_cloud() {
    let team = team(json!({ "cloud": false })).await;
    let allowed: KeyPatch = serde_json::from_value(json!({ "cloud": true })).unwrap();
    let eva = NewKey { name: KeyName::parse("eva").unwrap(), role: KeyRole::Member, rules: allowed };
    team.keys.create(eva, AuditActor::terminal()).await.unwrap();
    let request =
        EmbedRequest { model: "e".into(), inputs: vec!["gate".to_owned()].into(), ..EmbedRequest::default() };
    for (key, vectors) in [("cloud", false), ("vllm", true)] {
        let engine = Arc::new(ScriptedEngine::saying(&[]).called(key));
        let memory = charged(Embedder { engine: engine.clone(), model: "e".into() }).engine;
        let made = team.system.charged_to(team.keys.grant("ana", None), memory.embed(&request)).await;
        assert_eq!((made.is_ok(), engine.embed_requests().len()), (vectors, usize::from(vectors)), "{key}");
        if let Err(refusal) = made {
            assert!(refusal.to_string().contains("the key 'ana' may not use the cloud"), "{refusal}");
        }
        team.system.charged_to(team.keys.grant("eva", None), memory.embed(&request)).await.unwrap();
        memory.embed(&request).await.unwrap();
    }
}

#[tokio::test]
async fn turning_text_into_tokens_and_back_counts_as_a_request() {
    let team = team(json!({ "parallel": 1 })).await;
    let text = || TokenizeRequest {
        model: "m".into(),
        input: TokenizeInput::Conversation(Box::new(question(1))),
        pieces: false,
    };
    let tokens = || DetokenizeRequest { model: "m".into(), tokens: vec![104, 105] };
    team.system.tokenize(text(), &task()).await.unwrap();
    assert_eq!(team.system.detokenize(tokens(), &task()).await.unwrap(), "hi");
    let spending = team.keys.grant("ana", None).unwrap().spending.clone().unwrap();
    let running = spending.begin_request().await.unwrap();
    let refused = [
        team.system.tokenize(text(), &task()).await.err(),
        team.system.detokenize(tokens(), &task()).await.err(),
        team.system.count_tokens(question(1), &task()).await.err(),
    ];
    for refusal in refused {
        let Some(AskError::Limit(limit)) = refusal else { panic!("{refusal:?}") };
        assert_eq!(limit.kind, LimitKind::Parallel);
    }
    drop(running);
    team.system.count_tokens(question(1), &task()).await.unwrap();
}

/// The key of an owner, because only its agents read the memory.
#[tokio::test]
async fn the_vector_of_a_question_to_the_memory_is_charged_to_the_key_of_the_run() {
    let team = team(json!({})).await;
    let rules: KeyPatch = serde_json::from_value(json!({ "budgets": ["10k tokens/day"] })).unwrap();
    let boss = KeyName::parse("boss").unwrap();
    let new = NewKey { name: boss.clone(), role: KeyRole::Owner, rules };
    team.keys.create(new, AuditActor::terminal()).await.unwrap();
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let note = root.path().join("gate.md");
    std::fs::write(&note, "# Garden gate\n\nThe code of the gate is 4711.").unwrap();
    let mut config = Config::default();
    config.memory.backend = MemoryBackendName::Vector;
    let vectors = Arc::new(ScriptedEngine::saying(&[]).with_embedding_models(&["e"]));
    let embedder = charged(Embedder { engine: vectors.clone(), model: "e".into() });
    let wiring = MemoryWiring { embedder: Some(embedder), ..MemoryWiring::default() };
    let memory = open_memory(&config, &home, Databases::in_files(&home).memory, wiring).unwrap();
    memory.index(&note).await.unwrap();
    assert!(team.log.0.lock().unwrap().is_empty(), "the terminal pays nothing");
    let indexed = vectors.embed_requests().len();
    let system = team.system.with_memory(memory);
    let caller = Caller {
        permit: Permit { key: Some("boss".into()), ..Permit::up_to(Reach::Act) },
        agent: AgentPreference::Named("simple".into()),
        ..Caller::trusted(RequestSource::Server, "run-1")
    };
    let asked = GenerateRequest { messages: vec![Message::new(Role::User, "gate")], ..question(100) };
    system.complete(asked, &caller).await.unwrap();
    assert_eq!(vectors.embed_requests().len(), indexed + 1);
    let recorded: Vec<_> = team
        .log
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|call| (call.model.clone(), call.key.as_deref().map(str::to_owned)))
        .collect();
    let boss_paid = |model: &str| (model.to_owned(), Some("boss".to_owned()));
    assert_eq!(recorded, [boss_paid("e"), boss_paid("m")]);
    // The one word of the question, and the answer: 3 tokens read, 1 written.
    assert_eq!(team.keys.show(&boss).await.unwrap().1[0].used, 1 + 4);
}

#[test]
fn tools_of_the_owner_are_named_as_they_are() {
    let sources = [
        include_str!("../../memory/src/tools/store.rs"),
        include_str!("../../memory/src/tools/index.rs"),
        include_str!("../../channels/src/tools.rs"),
        include_str!("../../mail/src/tool.rs"),
        include_str!("../../tasks/src/tools/list.rs"),
        include_str!("../../tasks/src/tools/change.rs"),
        include_str!("../../sources/src/tools/calendar.rs"),
        include_str!("../../sources/src/tools/feeds.rs"),
        include_str!("../../sources/src/tools/weather.rs"),
        include_str!("../../sources/src/tools/page_changes.rs"),
        include_str!("../../core/src/tool.rs"),
    ];
    for tool in OWNER_TOOLS {
        let quoted = format!("\"{tool}\"");
        let count = sources.iter().filter(|source| source.contains(&quoted)).count();
        assert!(count >= 2, "{tool}");
    }
}
