//! `/v1/memory`, for the owner.

use std::sync::Arc;

use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::{AskService, Databases};
use hob_config::{Config, ServerConfig};
use serde_json::{Value, json};

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network};
use crate::support::TestServer;

pub struct MemoryServer {
    root: tempfile::TempDir,
    pub http: TestServer,
}

/// A server with a note about a gate, or with nothing.
pub async fn memory_server(note: Option<&str>) -> MemoryServer {
    let root = tempfile::tempdir().unwrap();
    let wiring = MemoryWiring::default();
    let memory =
        open_memory(&Config::default(), root.path(), Databases::in_files(root.path()).memory, wiring)
            .unwrap();
    if let Some(note) = note {
        // Nothing in Hob's own directory is ever indexed.
        let documents = tempfile::tempdir().unwrap();
        let path = documents.path().join("gate.md");
        std::fs::write(&path, note).unwrap();
        memory.index(&path).await.unwrap();
    }
    let system = AskService::new(parts(calculating())).with_memory(memory);
    MemoryServer { root, http: TestServer::start_parts(Arc::new(system), loopback_config()).await }
}

impl AsRef<TestServer> for MemoryServer {
    fn as_ref(&self) -> &TestServer {
        &self.http
    }
}

impl MemoryServer {
    async fn search(&self, body: &Value) -> (u16, Value) {
        let url = self.http.url("/v1/memory/search");
        let response = self.http.client.post(url).json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn stats(&self) -> Value {
        let url = self.http.url("/v1/memory/stats");
        self.http.client.get(url).send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }
}

#[tokio::test]
async fn the_owner_can_search_and_read_the_statistics() {
    let server = memory_server(Some("# Garden gate\n\nThe code is 4711.")).await;
    let document = document_of(&server.http).await;
    let request = json!({ "query": "code of the gate's \"lock\" AND (", "top_k": 3 });
    assert_fits(&document, "MemorySearch", &request);
    let (status, found) = server.search(&request).await;
    assert_eq!(status, 200, "{found}");
    assert_fits(&document, "MemoryResults", &found);
    assert_eq!((&found["backend"], found["passages"].as_array().unwrap().len()), (&json!("sqlite"), 1));
    let passage = &found["passages"][0];
    assert!(passage["source"].as_str().unwrap().ends_with("gate.md"), "{passage}");
    assert_eq!((&passage["line"], &passage["place"]), (&json!(1), &json!("line")));

    let stats = server.stats().await;
    assert_fits(&document, "MemoryStats", &stats);
    assert_eq!((&stats["sources"], &stats["chunks"], &stats["vectors"]), (&json!(1), &json!(1), &json!(0)));
}

#[tokio::test]
async fn an_empty_memory_has_no_results_and_creates_no_database() {
    let server = memory_server(None).await;
    let (status, found) = server.search(&json!({ "query": "anything" })).await;
    assert_eq!((status, found), (200, json!({ "backend": "sqlite", "passages": [] })));
    assert_eq!(server.stats().await["sources"], 0);
    assert!(!server.root.path().join("memory.db").exists());
}

#[tokio::test]
async fn an_invalid_search_names_its_field() {
    let server = memory_server(Some("text")).await;
    for (body, param) in [
        (json!({}), "query"),
        (json!({ "query": " " }), "query"),
        (json!({ "query": 7 }), "query"),
        (json!({ "query": "x", "top_k": 0 }), "top_k"),
        (json!({ "query": "x", "top_k": 101 }), "top_k"),
        (json!({ "query": "x", "top_k": "5" }), "top_k"),
        (json!({ "query": "x", "backend": "faiss" }), "backend"),
    ] {
        let (status, answer) = server.search(&body).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{body}: {answer}");
    }
}

#[tokio::test]
async fn searching_by_meaning_without_vectors_says_what_to_do() {
    let server = memory_server(Some("text")).await;
    let (status, answer) = server.search(&json!({ "query": "x", "backend": "vector" })).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("no_vectors")), "{answer}");
}

#[tokio::test]
async fn strangers_are_refused() {
    let engine = calculating();
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let search = server.client.post(server.url("/v1/memory/search")).json(&json!({ "query": "x" })).send();
    let stats = server.client.get(server.url("/v1/memory/stats")).send();
    for response in [search.await.unwrap(), stats.await.unwrap()] {
        assert_eq!(response.status(), 403);
    }
}
