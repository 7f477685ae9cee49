//! Hob's own fields of chat completions: `documents` with its sources, and `steps`.

use std::path::Path;
use std::sync::Arc;

use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::{AskService, AskServiceParts, Databases};
use hob_config::Config;
use hob_core::{CollectionName, Engine, KeyRing, PASSAGES_BEGIN};
use hob_keys::KeyRole;
use hob_memory::{IndexRequest, MemoryBackend};
use hob_server::ServerParts;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::admin::openapi::{assert_fits, document_of};
use crate::client::asking;
use crate::fixtures::{ARGUMENTS, calculating, loopback_config, parts};
use crate::key_fixtures::{create_key, key_service, message, send};
use crate::support::TestServer;

const NOTE: &str = "The code of the gate is 4711.";

struct DocumentServer {
    _home: TempDir,
    engine: Arc<ScriptedEngine>,
    http: TestServer,
}

/// A server with a note in the collection `team`, or with nothing. Without an agent, only a request adds passages.
async fn document_server(note: Option<&str>, config: Config, has_agent: bool) -> DocumentServer {
    let home = tempfile::tempdir().unwrap();
    let memory =
        open_memory(&config, home.path(), Databases::in_files(home.path()).memory, MemoryWiring::default())
            .unwrap();
    if let Some(note) = note {
        let documents = tempfile::tempdir().unwrap();
        let path = documents.path().join("gate.md");
        std::fs::write(&path, note).unwrap();
        let indexing = IndexRequest {
            backend: Some(MemoryBackend::Sqlite),
            collection: CollectionName::parse("team").unwrap(),
            listener: Arc::new(|_| {}),
            stop: CancellationToken::new(),
        };
        memory.index_with(&path, indexing).await.unwrap();
    }
    let engine = calculating();
    let parts = parts(Arc::clone(&engine) as Arc<dyn Engine>);
    let agent = parts.agent.clone().filter(|_| has_agent);
    let keys = key_service();
    let system = AskService::new(AskServiceParts { agent, ..parts }).with_memory(memory);
    let system = system.with_keys(Arc::clone(&keys) as Arc<dyn KeyRing>);
    let parts = ServerParts { keys: Some(keys), ..ServerParts::from(Arc::new(system)) };
    DocumentServer { _home: home, engine, http: TestServer::start_parts(parts, loopback_config()).await }
}

fn question(fields: Value) -> Value {
    let mut body = asking(fields);
    body["messages"] = json!([{ "role": "user", "content": "What is the code of the gate?" }]);
    body
}

/// The chunks of a stream.
fn chunks(text: &str) -> Vec<Value> {
    let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Asserts that these are the passages in the question that the engine got last.
fn assert_sources(server: &DocumentServer, sources: &Value) {
    let requests = server.engine.requests();
    let asked = requests.last().unwrap().messages.last().unwrap().content.text().into_owned();
    assert_eq!(asked.matches(PASSAGES_BEGIN).count(), 1, "{asked}");
    let [source] = &sources.as_array().unwrap()[..] else { panic!("one source: {sources}") };
    assert!(Path::new(source["document"].as_str().unwrap()).ends_with("gate.md"), "{source}");
    assert_eq!(source["passage"], NOTE);
    assert!(asked.contains(&format!("\n{NOTE}\n")), "{asked}");
    assert!(source["score"].as_f64().is_some());
    assert_eq!(source.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn a_request_for_documents_gets_passages_and_their_sources() {
    let server = document_server(Some(NOTE), Config::default(), false).await;
    let document = document_of(&server.http).await;
    for documents in [json!(true), json!(["team"])] {
        let response = server.http.chat(&question(json!({ "documents": documents }))).await;
        assert_eq!(response.headers().get("x-hob-warning"), None);
        let whole: Value = response.json().await.unwrap();
        assert_fits(&document, "ChatCompletion", &whole);
        assert_sources(&server, &whole["sources"]);

        let body = question(json!({
            "documents": documents, "stream": true, "stream_options": { "include_usage": true },
        }));
        let text = server.http.chat(&body).await.text().await.unwrap();
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        let chunks = chunks(&text);
        for chunk in &chunks {
            assert_fits(&document, "ChatCompletionChunk", chunk);
        }
        let (last, others) = chunks.split_last().unwrap();
        assert!(others.iter().all(|chunk| chunk.get("sources").is_none()), "{text}");
        assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(25)));
        assert_sources(&server, &last["sources"]);
    }
    // In another collection there is nothing, and the question stays as it is.
    let response = server.http.chat(&question(json!({ "documents": ["home"] }))).await;
    assert_eq!(response.headers()["x-hob-warning"], "nothing-indexed");
    let whole: Value = response.json().await.unwrap();
    assert_eq!(whole["sources"], json!([]));
}

#[tokio::test]
async fn documents_are_added_once_whether_the_configuration_adds_them_or_not() {
    for context in [true, false] {
        let mut config = Config::default();
        config.memory.context = context;
        // The agent gets passages of its own accord where the configuration adds them.
        let server = document_server(Some(NOTE), config, true).await;
        let body = question(json!({ "documents": true }));
        let whole: Value = server.http.chat(&body).await.json().await.unwrap();
        let first = server.engine.requests()[0].messages.last().unwrap().content.text().into_owned();
        assert_eq!(first.matches(PASSAGES_BEGIN).count(), 1, "{first}");
        assert_eq!(whole["sources"][0]["passage"], NOTE);
    }
}

#[tokio::test]
async fn documents_that_are_not_there_are_a_warning_and_foreign_ones_an_error() {
    let empty = document_server(None, Config::default(), false).await;
    for stream in [false, true] {
        let response = empty.http.chat(&question(json!({ "documents": true, "stream": stream }))).await;
        assert_eq!(response.headers()["x-hob-warning"], "nothing-indexed");
        assert!(response.text().await.unwrap().contains("\"sources\":[]"));
    }
    let keys = key_service();
    let system = AskService::new(parts(calculating())).with_keys(Arc::clone(&keys) as Arc<dyn KeyRing>);
    let parts = ServerParts { keys: Some(Arc::clone(&keys)), ..ServerParts::from(Arc::new(system)) };
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let ana = create_key(&keys, "ana", KeyRole::Member, json!({ "memory": ["team"] })).await;
    let ben = create_key(&keys, "ben", KeyRole::Member, json!({})).await;
    for (key, documents, expected) in [
        (&ana, json!(["home"]), "this key may not read the collection 'home'."),
        (&ben, json!(true), "the key 'ben' names no collections"),
    ] {
        let body = question(json!({ "documents": documents }));
        let response = send(&server, reqwest::Method::POST, "/v1/chat/completions", key, Some(body)).await;
        assert_eq!(response.status(), 403);
        let refused: Value = response.json().await.unwrap();
        assert!(message(&refused).starts_with(expected), "{refused}");
    }
    let (status, refused) = {
        let body = question(json!({ "documents": ["not a name"] }));
        let response = send(&server, reqwest::Method::POST, "/v1/chat/completions", &ana, Some(body)).await;
        (response.status(), response.json::<Value>().await.unwrap())
    };
    assert_eq!((status.as_u16(), &refused["error"]["param"]), (400, &json!("documents")), "{refused}");
}

#[tokio::test]
async fn the_steps_of_an_agent_are_chunks_as_they_happen() {
    let server = document_server(None, Config::default(), true).await;
    let document = document_of(&server.http).await;
    let body = asking(json!({ "agent": "orchestrator", "stream": true, "steps": true }));
    let text = server.http.chat(&body).await.text().await.unwrap();
    assert!(!text.contains(": hob TOOL"), "{text}");
    let chunks = chunks(&text);
    for chunk in &chunks {
        assert_fits(&document, "ChatCompletionChunk", chunk);
        // A client of OpenAI reads a delta of each, and ignores those without content.
        assert!(chunk["choices"][0]["delta"].is_object(), "{chunk}");
    }
    let steps: Vec<&Value> = chunks.iter().filter_map(|chunk| chunk.get("step")).collect();
    assert_eq!(
        steps,
        [
            &json!({ "id": "c1", "tool": "calculator", "arguments": ARGUMENTS }),
            &json!({ "id": "c1", "tool": "calculator", "result": "391", "success": true }),
        ]
    );
    assert!(text.find("\"step\"") < text.find("\"content\""), "{text}");

    let whole: Value = server.http.chat(&asking(json!({ "steps": true }))).await.json().await.unwrap();
    assert_fits(&document, "ChatCompletion", &whole);
    assert_eq!(
        whole["steps"],
        json!([{
            "id": "c1", "tool": "calculator", "arguments": ARGUMENTS, "result": "391", "success": true,
        }])
    );
}

#[tokio::test]
async fn a_client_of_openai_gets_neither_sources_nor_steps() {
    let server = document_server(Some(NOTE), Config::default(), true).await;
    for fields in [json!({}), json!({ "documents": false, "steps": false })] {
        let whole: Value = server.http.chat(&question(fields.clone())).await.json().await.unwrap();
        let mut names: Vec<&str> = whole.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["choices", "created", "id", "model", "object", "usage"], "{fields}");
        let mut streamed = question(fields);
        streamed["stream"] = json!(true);
        streamed["agent"] = json!("orchestrator");
        let text = server.http.chat(&streamed).await.text().await.unwrap();
        assert!(!text.contains("sources") && !text.contains("\"step\""), "{text}");
    }
}
