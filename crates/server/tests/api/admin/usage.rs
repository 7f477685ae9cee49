//! `GET /v1/usage` and what is recorded of the users of a client.

use std::sync::Arc;

use hob_app::startup::telemetry::telemetry_options;
use hob_app::{AskService, AskServiceParts, hob_database};
use hob_config::{Config, ServerConfig};
use hob_core::KeyRing;
use hob_db::Database;
use hob_keys::{KeyOptions, KeyRole, KeyService, SqliteKeyStore};
use hob_server::ServerParts;
use hob_telemetry::{Inference, InferenceEnd, TelemetryService};
use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::openapi::{assert_fits, document_of};
use super::savings::call;
use crate::fixtures::{loopback_config, parts, parts_reached_from_network};
use crate::key_fixtures::{create_key, get, send};
use crate::support::TestServer;

/// Keys, recorded calls, and an engine with one model.
pub struct TeamParts {
    _home: TempDir,
    /// Of the keys.
    pub database: Database,
    pub keys: Arc<KeyService>,
    pub record: TelemetryService,
}

impl TeamParts {
    pub fn open() -> Self {
        let home = tempfile::tempdir().unwrap();
        let database = Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap();
        let store = Arc::new(SqliteKeyStore::new(database.clone()));
        let keys = Arc::new(KeyService::new(KeyOptions::new(store)));
        let record =
            TelemetryService::open(&telemetry_options(&Config::default()), hob_database(home.path()));
        TeamParts { _home: home, database, keys, record }
    }

    pub fn of_server(&self) -> ServerParts {
        let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["qwen3:8b"]));
        let log = Arc::new(self.record.clone());
        let system = AskService::new(AskServiceParts { agent: None, log, ..parts(engine) });
        let system = system.with_keys(Arc::clone(&self.keys) as Arc<dyn KeyRing>);
        ServerParts {
            keys: Some(Arc::clone(&self.keys)),
            record: self.record.clone(),
            ..ServerParts::from(Arc::new(system))
        }
    }

    pub async fn start(&self, config: ServerConfig) -> TestServer {
        TestServer::start_parts(self.of_server(), config).await
    }

    /// Creates a key, and returns its secret.
    pub async fn create(&self, name: &str, role: KeyRole, rules: Value) -> String {
        create_key(&self.keys, name, role, rules).await
    }

    /// Adds calls of a key that failed.
    pub fn record_failures(&self, key: &str, reasons: &[&str]) {
        let failed = |reason: &&str| {
            let ending = InferenceEnd::Failed((*reason).to_owned());
            Inference { key: Some(key.into()), ..call(None, Some(ending)) }
        };
        let calls: Vec<Inference> = reasons.iter().map(failed).collect();
        self.record.store().unwrap().record_batch(&calls, self.record.prices()).unwrap();
    }
}

/// Sends a request, and waits for the end of its answer.
async fn ask(server: &TestServer, path: &str, key: &str, mut body: Value) {
    body["model"] = json!("qwen3:8b");
    let answer = send(server, Method::POST, path, key, Some(body)).await;
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert_eq!(status, 200, "{path}: {text}");
}

fn question() -> Value {
    json!({ "messages": [{ "role": "user", "content": "hi" }] })
}

#[tokio::test]
async fn the_owner_sees_the_calls_of_all_keys_and_a_member_its_own() {
    let team = TeamParts::open();
    let ana = team.create("ana", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    for key in [&*ana, &*ana, ""] {
        ask(&server, "/v1/chat/completions", key, question()).await;
    }
    // What waits is written first.
    team.record.clone().close().await;
    team.record_failures("ana", &["out of memory", "no answer", "out of memory"]);

    let document = document_of(&server).await;
    let (status, all) = get(&server, "/v1/usage?days=2", "").await;
    assert_eq!(status, 200, "{all}");
    assert_fits(&document, "UsageReport", &all);
    let shown = |report: &Value| -> Vec<Value> {
        let rows = report["data"].as_array().unwrap().iter();
        rows.map(|row| json!([row["key"], row["calls"], row["failures"], row["frequent_failure"]])).collect()
    };
    let failure = json!({ "reason": "out of memory", "calls": 2 });
    assert_eq!(shown(&all), [json!(["ana", 5, 3, failure]), json!([null, 1, 0, null])]);
    assert!(all["data"][0]["latency"]["p50"].as_f64().is_some(), "{all}");
    assert!(all["data"][0]["last_day"].as_str().is_some(), "{all}");

    let (status, own) = get(&server, "/v1/usage", &ana).await;
    assert_eq!(status, 200, "{own}");
    assert_fits(&document, "UsageReport", &own);
    assert_eq!(shown(&own), [json!(["ana", 5, 3, null])]);
    assert_eq!(own["since"], Value::Null);
    for wrong in ["days=0", "days=3661", "days=x"] {
        assert_eq!(get(&server, &format!("/v1/usage?{wrong}"), "").await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn strangers_see_neither_the_usage_nor_the_audit_log() {
    let team = TeamParts::open();
    let server = parts_reached_from_network(team.of_server(), loopback_config()).await;
    for path in ["/v1/usage", "/v1/audit", "/v1/keys"] {
        let (status, refused) = get(&server, path, "").await;
        assert_eq!(status, 403, "{path}");
        assert!(refused["detail"].as_str().unwrap().contains("for the owner only"), "{refused}");
    }
}

#[tokio::test]
async fn the_list_of_keys_has_what_each_has_used_of_its_limits() {
    let team = TeamParts::open();
    let ana = team.create("ana", KeyRole::Member, json!({ "budgets": ["1k tokens/month"] })).await;
    team.create("ben", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    let mut body = question();
    body["max_tokens"] = json!(5);
    ask(&server, "/v1/chat/completions", &ana, body).await;
    let (_, list) = get(&server, "/v1/keys", "").await;
    assert_fits(&document_of(&server).await, "KeyList", &list);
    let (_, own) = get(&server, "/v1/keys/self", &ana).await;
    assert_eq!(list["data"][0]["usage"], own["usage"]);
    assert!(own["usage"][0]["used"].as_u64() > Some(0), "{own}");
    assert_eq!(list["data"][1]["usage"], json!([]));
}

#[tokio::test]
async fn the_user_that_a_client_names_is_recorded_for_every_api() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let chat = |more: Value| {
        let mut body = question();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let requests = [
        ("/v1/chat/completions", chat(json!({ "user": "chat" })), Some("chat")),
        ("/v1/chat/completions", chat(json!({ "user": "stream", "stream": true })), Some("stream")),
        ("/v1/chat/completions", chat(json!({ "safety_identifier": "safety" })), Some("safety")),
        ("/v1/chat/completions", chat(json!({})), None),
        ("/v1/completions", json!({ "prompt": "hi", "user": "text" }), Some("text")),
        ("/v1/completions", json!({ "prompt": "hi", "user": "pieces", "stream": true }), Some("pieces")),
        ("/v1/embeddings", json!({ "input": "hi", "user": "vector" }), Some("vector")),
        ("/v1/embeddings", json!({ "input": "hi", "user": 7 }), None),
        ("/v1/responses", json!({ "input": "hi", "user": "response" }), Some("response")),
        (
            "/v1/responses",
            json!({ "input": "hi", "safety_identifier": "events", "stream": true }),
            Some("events"),
        ),
        (
            "/v1/messages",
            chat(json!({ "max_tokens": 9, "metadata": { "user_id": "message" } })),
            Some("message"),
        ),
    ];
    let mut expected = Vec::new();
    for (path, body, user) in requests {
        ask(&server, path, "", body).await;
        expected.push(user.map(str::to_owned));
    }
    team.record.clone().close().await;
    let calls = team.record.store().unwrap().recent(20).unwrap();
    let users: Vec<Option<String>> = calls.into_iter().rev().map(|call| call.end_user).collect();
    assert_eq!(users, expected);
}
