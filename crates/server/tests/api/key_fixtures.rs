//! Servers with named keys, and requests with a key.

use std::sync::Arc;

use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{AskService, AskServiceParts, hob_database};
use hob_conversations::{ResponseStore, SqliteConversationStore, SqliteResponseStore};
use hob_core::{Ask, KeyRing};
use hob_db::Database;
use hob_keys::{AuditActor, KeyName, KeyOptions, KeyPatch, KeyRole, KeyService, NewKey, SqliteKeyStore};
use hob_server::ServerParts;
use hob_tasks::{Scheduler, SchedulerOptions, SchedulerParts};
use reqwest::{Method, Response};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::TestServer;

pub fn key_service() -> Arc<KeyService> {
    Arc::new(KeyService::new(key_options()))
}

/// Keys in memory.
pub fn key_options() -> KeyOptions {
    let database = Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap();
    KeyOptions::new(Arc::new(SqliteKeyStore::new(database)))
}

/// A server with keys, tasks, stored responses and chats.
pub fn key_parts(home: &TempDir, keys: &Arc<KeyService>, parts: AskServiceParts) -> ServerParts {
    let system = Arc::new(AskService::new(parts).with_keys(Arc::clone(keys) as Arc<dyn KeyRing>));
    let scheduler = Scheduler::new(SchedulerParts {
        tasks: task_service(hob_database(home.path()), task_options(None)),
        ask: Arc::clone(&system) as Arc<dyn Ask>,
        bus: system.bus().clone(),
        options: SchedulerOptions::default(),
    });
    let database = Database::in_memory(&[hob_conversations::MIGRATIONS]).unwrap();
    let chats = SqliteConversationStore::new(database.clone());
    let responses: Arc<dyn ResponseStore> = Arc::new(SqliteResponseStore::new(database));
    ServerParts {
        keys: Some(Arc::clone(keys)),
        scheduler: Some(Arc::new(scheduler)),
        responses: Some(responses),
        chats: Some(Arc::new(chats)),
        ..ServerParts::from(system)
    }
}

/// Creates a key, and returns its secret.
pub async fn create_key(keys: &Arc<KeyService>, name: &str, role: KeyRole, rules: Value) -> String {
    let rules: KeyPatch = serde_json::from_value(rules).unwrap();
    let new = NewKey { name: KeyName::parse(name).unwrap(), role, rules };
    keys.create(new, AuditActor::terminal()).await.unwrap().secret.expose().to_owned()
}

/// Sends a request. Without a key, `key` is empty.
pub async fn send(
    server: &TestServer,
    method: Method,
    path: &str,
    key: &str,
    body: Option<Value>,
) -> Response {
    let mut request = server.client.request(method, server.url(path));
    if !key.is_empty() {
        request = request.bearer_auth(key);
    }
    match body {
        Some(body) => request.json(&body),
        None => request,
    }
    .send()
    .await
    .unwrap()
}

pub async fn get(server: &TestServer, path: &str, key: &str) -> (u16, Value) {
    let response = send(server, Method::GET, path, key, None).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

pub async fn post(server: &TestServer, path: &str, key: &str, body: Value) -> (u16, Value) {
    let response = send(server, Method::POST, path, key, Some(body)).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

pub fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}
