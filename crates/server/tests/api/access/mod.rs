//! Who may use what, with named keys: every route with every kind of key, the objects of others, models, and budgets under load.

mod apart;
mod budgets;
mod models;
mod paying;
mod routes;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hob_app::AskServiceParts;
use hob_core::{Clock, Engine};
use hob_db::Database;
use hob_keys::{CallCost, KeyName, KeyOptions, KeyRole, KeyService, PriceFn, SqliteKeyStore};
use hob_server::ServerParts;
use hob_testkit::ScriptedEngine;
use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::key_fixtures::{create_key, key_parts};
use crate::support::{TestServer, plain_parts};

/// The price of a token of a cloud model, in thousand millionths of a dollar.
const NANO_DOLLARS_PER_TOKEN: u64 = 1_000_000;

/// Keys with a clock of their own, so that no test depends on the time of day, and what a server with them needs.
struct Team {
    home: TempDir,
    keys: Arc<KeyService>,
    seconds: Arc<AtomicI64>,
    engine: Arc<ScriptedEngine>,
}

impl Team {
    fn new() -> Self {
        let noon: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let seconds = Arc::new(AtomicI64::new(noon.as_second()));
        let now = Arc::clone(&seconds);
        let clock: Arc<dyn Clock> =
            Arc::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap());
        let database = Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap();
        let price: PriceFn = Arc::new(|engine, _, prompt, completion| match engine {
            "cloud" => CallCost::NanoDollars((prompt + completion) * NANO_DOLLARS_PER_TOKEN),
            _ => CallCost::Free,
        });
        let options = KeyOptions { clock, price, ..KeyOptions::new(Arc::new(SqliteKeyStore::new(database))) };
        let engine = ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["qwen3:8b", "llama3:8b"]);
        Team {
            home: tempfile::tempdir().unwrap(),
            keys: Arc::new(KeyService::new(options)),
            seconds,
            engine: Arc::new(engine),
        }
    }

    fn forward(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// A server with keys, tasks and stored responses.
    fn parts(&self) -> ServerParts {
        self.parts_with(plain_parts(Arc::clone(&self.engine) as Arc<dyn Engine>))
    }

    fn parts_with(&self, parts: AskServiceParts) -> ServerParts {
        key_parts(&self.home, &self.keys, parts)
    }

    /// The secret of a new key.
    async fn create(&self, name: &str, role: KeyRole, rules: Value) -> String {
        create_key(&self.keys, name, role, rules).await
    }

    async fn member(&self, name: &str, rules: Value) -> String {
        self.create(name, KeyRole::Member, rules).await
    }

    /// What a key has used of its only limit.
    async fn used(&self, name: &str) -> u64 {
        let (_, usage) = self.keys.show(&key_name(name)).await.unwrap();
        assert_eq!(usage.len(), 1, "{usage:?}");
        usage[0].used
    }
}

fn key_name(name: &str) -> KeyName {
    KeyName::parse(name).unwrap()
}

/// A request, with a JSON body where it may have one. Without a key, `key` is empty.
fn request(server: &TestServer, method: &Method, path: &str, key: &str) -> RequestBuilder {
    let mut request = server.client.request(method.clone(), server.url(path));
    if !key.is_empty() {
        request = request.bearer_auth(key);
    }
    match *method {
        Method::GET | Method::HEAD => request,
        _ => request.json(&json!({})),
    }
}

async fn post(server: &TestServer, path: &str, key: &str, body: &Value) -> (u16, Value) {
    answer(request(server, &Method::POST, path, key).json(body).send().await.unwrap()).await
}

async fn get(server: &TestServer, path: &str, key: &str) -> (u16, Value) {
    answer(request(server, &Method::GET, path, key).send().await.unwrap()).await
}

async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
