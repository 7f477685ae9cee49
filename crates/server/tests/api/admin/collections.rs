//! Collections of the memory: what a member finds by route, by tool and in its questions, and what the owner finds.

use std::path::Path;
use std::sync::Arc;

use hob_agents::ToolSet;
use hob_agents::builtin::Calculator;
use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::{AskService, AskServiceParts, Databases};
use hob_config::Config;
use hob_core::{AllowedRoots, CollectionName, Engine, GenerateRequest, KeyRing, Role, Tool};
use hob_keys::{AuditActor, KeyName, KeyPatch, KeyRole, KeyService};
use hob_memory::{IndexRequest, MemoryBackend, MemoryService, memory_tools};
use hob_server::ServerParts;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::admin::openapi::{assert_fits, document_of};
use crate::client::asking;
use crate::fixtures::{calling, loopback_config, offered, parts};
use crate::key_fixtures::{create_key, get, key_service, post};
use crate::support::TestServer;

/// Each collection has a document with its own code.
const DOCUMENTS: [(&str, &str, &str); 3] = [
    ("default", "own.md", "The code of the gate is 1111."),
    ("team", "team.md", "The code of the gate is 2222."),
    ("handbook", "handbook.md", "The code of the gate is 3333."),
];

const QUESTION: &str = "What is the code of the gate?";

struct Team {
    _home: TempDir,
    keys: Arc<KeyService>,
    engine: Arc<ScriptedEngine>,
    http: TestServer,
}

async fn index(memory: &MemoryService, collection: &str, path: &Path) {
    let indexing = IndexRequest {
        backend: Some(MemoryBackend::Sqlite),
        collection: CollectionName::parse(collection).unwrap(),
        listener: Arc::new(|_| {}),
        stop: CancellationToken::new(),
    };
    memory.index_with(path, indexing).await.unwrap();
}

/// A server whose engine asks for `memory_search` if it has tools.
async fn team() -> Team {
    let home = tempfile::tempdir().unwrap();
    let databases = Databases::in_files(home.path());
    let memory =
        open_memory(&Config::default(), home.path(), databases.memory, MemoryWiring::default()).unwrap();
    let documents = tempfile::tempdir().unwrap();
    for (collection, name, text) in DOCUMENTS {
        let path = documents.path().join(name);
        std::fs::write(&path, text).unwrap();
        index(&memory, collection, &path).await;
    }
    let engine = calling("memory_search", r#"{"query":"code of the gate"}"#);
    let calculator: Arc<dyn Tool> = Arc::new(Calculator);
    let tools = memory_tools(&memory, AllowedRoots::default()).into_iter().chain([calculator]);
    let tools = ToolSet::new(tools).unwrap();
    let parts = AskServiceParts { tools, ..parts(Arc::clone(&engine) as Arc<dyn Engine>) };
    let keys = key_service();
    let system = AskService::new(parts).with_memory(memory).with_keys(Arc::clone(&keys) as Arc<dyn KeyRing>);
    let parts = ServerParts { keys: Some(Arc::clone(&keys)), ..ServerParts::from(Arc::new(system)) };
    let http = TestServer::start_parts(parts, loopback_config()).await;
    Team { _home: home, keys, engine, http }
}

/// The codes in a text.
fn codes(text: &str) -> Vec<&'static str> {
    ["1111", "2222", "3333"].into_iter().filter(|code| text.contains(code)).collect()
}

impl Team {
    async fn key(&self, name: &str, role: KeyRole, rules: Value) -> String {
        create_key(&self.keys, name, role, rules).await
    }

    async fn post(&self, path: &str, key: &str, body: Value) -> (u16, Value) {
        post(&self.http, path, key, body).await
    }

    async fn stats(&self, query: &str, key: &str) -> (u16, Value) {
        get(&self.http, &format!("/v1/memory/stats{query}"), key).await
    }

    /// The codes that a search finds.
    async fn found(&self, key: &str, more: Value) -> Vec<&'static str> {
        let mut body = json!({ "query": "code of the gate" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.post("/v1/memory/search", key, body).await;
        assert_eq!(status, 200, "{answer}");
        let passages = answer["passages"].as_array().unwrap();
        codes(&passages.iter().map(|passage| passage["text"].as_str().unwrap()).collect::<String>())
    }

    /// The requests to the engine for a question to the agent: with the question, and with the result of the tool, if there was one.
    async fn asked(&self, key: &str) -> Vec<GenerateRequest> {
        let before = self.engine.requests().len();
        let body = asking(json!({ "messages": [{ "role": "user", "content": QUESTION }] }));
        let (status, answer) = self.post("/v1/chat/completions", key, body).await;
        assert_eq!(status, 200, "{answer}");
        self.engine.requests().split_off(before)
    }
}

/// The codes in the messages of a role.
fn codes_for(request: &GenerateRequest, role: Role) -> Vec<&'static str> {
    let messages = request.messages.iter().filter(|message| message.role == role);
    codes(&messages.map(|message| message.content.text().into_owned()).collect::<String>())
}

#[tokio::test]
async fn a_member_searches_the_collections_of_its_key_and_the_owner_all() {
    let team = team().await;
    let document = document_of(&team.http).await;
    let ana = team.key("ana", KeyRole::Member, json!({ "memory": ["team"] })).await;
    let ben = team.key("ben", KeyRole::Member, json!({ "memory": ["team", "handbook"] })).await;
    let eva = team.key("eva", KeyRole::Member, json!({ "reach": "act" })).await;
    let boss = team.key("boss", KeyRole::Owner, json!({})).await;
    let lead = team.key("lead", KeyRole::Owner, json!({ "memory": ["team"] })).await;
    for (key, expected) in [
        ("", &["1111", "2222", "3333"][..]),
        (&boss, &["1111", "2222", "3333"]),
        (&lead, &["2222"]),
        (&ana, &["2222"]),
        (&ben, &["2222", "3333"]),
    ] {
        assert_eq!(team.found(key, json!({})).await, expected);
        assert_eq!(team.found(key, json!({ "collections": ["team"] })).await, ["2222"]);
    }
    assert_eq!(team.found(&ben, json!({ "collection": "handbook" })).await, ["3333"]);
    assert_eq!(team.found(&boss, json!({ "collection": "unknown" })).await, [""; 0]);
    let request = json!({ "query": "gate", "collection": "team", "collections": null });
    assert_fits(&document, "MemorySearch", &request);

    // A collection that exists and one that does not are refused in the same words.
    for name in ["default", "handbook", "unknown"] {
        let (status, refused) =
            team.post("/v1/memory/search", &ana, json!({ "query": "gate", "collection": name })).await;
        let expected = format!(
            "this key may not read the collection '{name}'. GET /v1/keys/self lists the collections that it may read"
        );
        let error = &refused["error"];
        assert_eq!((status, &error["message"]), (403, &json!(expected)));
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("collection_not_allowed"), &json!("collection"))
        );
        assert_eq!(team.stats(&format!("?collection={name}"), &ana).await.0, 403);
    }
    let several = json!({ "query": "gate", "collections": ["team", "default"] });
    assert_eq!(team.post("/v1/memory/search", &ana, several).await.0, 403);
    for (wrong, param) in [
        (json!({ "query": "gate", "collection": "a/b" }), "collection"),
        (json!({ "query": "gate", "collections": [""] }), "collections"),
    ] {
        let (status, refused) = team.post("/v1/memory/search", &ana, wrong).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{refused}");
    }
    let (status, refused) = team.post("/v1/memory/search", &eva, json!({ "query": "gate" })).await;
    assert_eq!(status, 403);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the key 'eva' names no collections of documents."), "{refused}");
    assert_eq!(team.stats("", &eva).await.0, 403);
}

#[tokio::test]
async fn a_search_counts_as_a_request_of_its_key() {
    let team = team().await;
    let ana = team.key("ana", KeyRole::Member, json!({ "memory": ["team"], "requests_per_minute": 1 })).await;
    let mut statuses = Vec::new();
    // A new minute can begin between two of them, but not between all.
    for _ in 0..4 {
        statuses.push(team.post("/v1/memory/search", &ana, json!({ "query": "gate" })).await.0);
    }
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn statistics_of_a_member_have_nothing_of_other_collections() {
    let team = team().await;
    let document = document_of(&team.http).await;
    let ana = team.key("ana", KeyRole::Member, json!({ "memory": ["team", "planned"] })).await;
    let (status, own) = team.stats("", &ana).await;
    assert_eq!(status, 200, "{own}");
    assert_fits(&document, "MemoryStats", &own);
    assert_eq!((&own["sources"], own.get("database_bytes")), (&json!(1), None));
    assert_eq!(own["collections"], json!([{ "name": "team", "sources": 1, "chunks": 1 }]));
    let (_, all) = team.stats("", "").await;
    assert_fits(&document, "MemoryStats", &all);
    assert_eq!((&all["sources"], all["collections"].as_array().unwrap().len()), (&json!(3), 3));
    assert!(all["database_bytes"].as_u64().unwrap() > 0);
    let (_, one) = team.stats("?collection=handbook", "").await;
    assert_eq!(one["collections"], json!([{ "name": "handbook", "sources": 1, "chunks": 1 }]));
    // What the owner allows later counts from the next request.
    let patch: KeyPatch = serde_json::from_value(json!({ "memory": ["handbook"] })).unwrap();
    team.keys.patch(&KeyName::parse("ana").unwrap(), patch, AuditActor::terminal()).await.unwrap();
    assert_eq!(team.found(&ana, json!({})).await, ["3333"]);
}

#[tokio::test]
async fn an_agent_of_a_member_reads_only_the_collections_of_its_key() {
    let team = team().await;
    let ana = team.key("ana", KeyRole::Member, json!({ "memory": ["team"] })).await;
    let eva = team.key("eva", KeyRole::Member, json!({ "reach": "act" })).await;
    let cal = team.key("cal", KeyRole::Member, json!({ "memory": ["team"], "tools": ["calculator"] })).await;
    for (key, expected) in [("", &["1111", "2222", "3333"][..]), (&ana, &["2222"])] {
        let requests = team.asked(key).await;
        assert_eq!(requests.len(), 2, "a call of the tool, and the answer");
        assert_eq!(codes_for(&requests[0], Role::User), expected, "with the question");
        assert_eq!(codes_for(&requests[1], Role::Tool), expected, "by the tool");
    }
    let mut tools =
        offered(&team.asked(&ana).await[0]).iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>();
    tools.sort();
    assert_eq!(tools, ["calculator", "memory_search"], "and none that writes");
    // The engine calls the tool though it is not offered. `tools` selects tools, and passages are not a tool.
    for (key, with_question) in [(&eva, &[][..]), (&cal, &["2222"])] {
        let requests = team.asked(key).await;
        assert_eq!(offered(&requests[0]), ["calculator"]);
        assert_eq!(codes_for(&requests[0], Role::User), with_question);
        assert_eq!(codes_for(&requests[1], Role::Tool), [""; 0]);
    }
}
