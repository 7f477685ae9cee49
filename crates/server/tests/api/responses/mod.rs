//! The Responses API as its clients see it.

mod background;
mod conversations;
mod create;
mod custom_tools;
mod failures;
mod fields;
mod hostile;
mod input_tokens;
mod stored;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hob_agents::builtin::WebFetchOptions;
use hob_app::{AskService, DocumentReader, hob_database};
use hob_config::ServerConfig;
use hob_conversations::{BufferedResponseStore, ResponseStore, SqliteResponseStore};
use hob_core::{Delta, Engine, FinishReason, Message, ToolCallDelta};
use hob_net::egress::AddressPolicy;
use hob_server::ServerParts;
use hob_testkit::{FakeServer, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{NetworkServer, loopback_config, parts_reached_from_network, usage};
use crate::support::{TestServer, plain_parts};

/// A server that stores responses, with an engine that says "Hello" unless the test sets another.
pub struct StoringServer {
    pub server: TestServer,
    pub store: Arc<dyn ResponseStore>,
    pub home: TempDir,
}

impl AsRef<TestServer> for StoringServer {
    fn as_ref(&self) -> &TestServer {
        &self.server
    }
}

fn store_in(home: &Path) -> Arc<dyn ResponseStore> {
    let database = hob_database(home);
    // A response that is written after the end of its test would open it, and make the directory that the test has removed again.
    database.open().unwrap();
    Arc::new(BufferedResponseStore::new(SqliteResponseStore::new(database)))
}

fn storing_parts(engine: Arc<dyn Engine>, store: &Arc<dyn ResponseStore>) -> ServerParts {
    let system = Arc::new(AskService::new(plain_parts(engine)));
    ServerParts { responses: Some(Arc::clone(store)), ..ServerParts::from(system) }
}

impl StoringServer {
    pub async fn start(engine: Arc<dyn Engine>) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self::start_in(home, engine).await
    }

    /// The same with another time for answers to end when it stops.
    async fn start_with_grace(engine: Arc<dyn Engine>, shutdown_grace: Duration) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self::start_on(home, engine, ServerConfig { shutdown_grace, ..loopback_config() }).await
    }

    async fn start_in(home: TempDir, engine: Arc<dyn Engine>) -> Self {
        Self::start_on(home, engine, loopback_config()).await
    }

    /// The same, and Hob may fetch files from `files`.
    async fn start_beside(files: &FakeServer, engine: Arc<dyn Engine>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = store_in(home.path());
        let policy = AddressPolicy::public_only().with_exception(files.address());
        let options = WebFetchOptions { policy, ..WebFetchOptions::default() };
        let system = AskService::new(plain_parts(engine)).with_documents(DocumentReader::new(options, None));
        let parts =
            ServerParts { responses: Some(Arc::clone(&store)), ..ServerParts::from(Arc::new(system)) };
        let server = TestServer::start_parts(parts, loopback_config()).await;
        StoringServer { server, store, home }
    }

    pub async fn start_on(home: TempDir, engine: Arc<dyn Engine>, config: ServerConfig) -> Self {
        let store = store_in(home.path());
        let server = TestServer::start_parts(storing_parts(engine, &store), config).await;
        StoringServer { server, store, home }
    }

    pub async fn saying(words: &'static [&'static str]) -> Self {
        Self::start(Arc::new(ScriptedEngine::saying(words))).await
    }

    /// Stops the server, and starts another one on the same home.
    pub async fn restart(self, engine: Arc<dyn Engine>) -> Self {
        let StoringServer { server, store, home } = self;
        server.stop().await;
        store.flush().unwrap();
        Self::start_in(home, engine).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.server.client.post(self.server.url(path)).json(body).send().await.unwrap()
    }

    pub async fn create(&self, fields: Value) -> reqwest::Response {
        self.post("/v1/responses", &asking(fields)).await
    }

    /// A response that is stored.
    pub async fn created(&self, fields: Value) -> Value {
        json_of(self.create(fields).await).await
    }

    pub async fn ask(&self, method: Method, path: &str) -> reqwest::Response {
        self.server.client.request(method, self.server.url(path)).send().await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Value {
        json_of(self.ask(Method::GET, path).await).await
    }
}

/// The same server, reached from the network.
pub async fn reached_by_stranger(engine: Arc<dyn Engine>, home: &Path) -> NetworkServer {
    parts_reached_from_network(storing_parts(engine, &store_in(home)), ServerConfig::default()).await
}

/// A question to the model `m`, with `fields` added to it.
pub fn asking(fields: Value) -> Value {
    let mut body = json!({ "model": "m", "input": "hi" });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// The body of an answer that succeeded.
pub async fn json_of(response: reqwest::Response) -> Value {
    let status = response.status();
    let body = response.text().await.unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Status, `param` and `code` of an answer that failed.
pub async fn error_of(response: reqwest::Response) -> (u16, Value, Value) {
    let status = response.status().as_u16();
    let error = response.json::<Value>().await.unwrap()["error"].take();
    (status, error["param"].clone(), error["code"].clone())
}

/// The events of a stream, without comments. Each has its sequence number.
pub fn events_of(text: &str) -> Vec<Value> {
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let read = |block: &str| {
        let (name, data) = block.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        data
    };
    blocks.map(read).collect()
}

fn types_of(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

pub fn warnings_of(response: &reqwest::Response) -> Vec<String> {
    let values = response.headers().get_all("x-hob-warning").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// An engine that gives these pieces for every request.
pub fn giving(deltas: Vec<Delta>) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |_| deltas.iter().cloned().map(Ok).collect()))
}

pub fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

fn thought(text: &str) -> Delta {
    Delta::Reasoning { choice: 0, text: text.into() }
}

pub fn call(id: &str, name: &str, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index: 0,
        id: Some(id.into()),
        name: Some(name.into()),
        arguments: arguments.into(),
    })
}

/// An engine that thinks and calls `tool` until it has a result, and then says "done".
fn calling(tool: &'static str, arguments: &'static str) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |request| {
        let has_result = request.messages.iter().any(|message| message.tool_call_id.is_some());
        let deltas = match has_result {
            true => vec![Delta::text("done"), finish(FinishReason::Stop), usage(20, 5)],
            false => vec![
                thought("I need it"),
                call("c1", tool, arguments),
                finish(FinishReason::ToolCalls),
                usage(10, 3),
            ],
        };
        deltas.into_iter().map(Ok).collect()
    }))
}

/// The messages of the last request to an engine.
pub fn last_messages(engine: &ScriptedEngine) -> Vec<Message> {
    engine.requests().pop().unwrap().messages
}
