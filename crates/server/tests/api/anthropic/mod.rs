//! Anthropic's API: messages, counting tokens, models.

mod aliases;
mod count_tokens;
mod errors;
mod fields;
mod messages;
mod models;
mod recorded_clients;
mod stream;

use std::sync::Arc;

use hob_core::Engine;
use hob_testkit::ScriptedEngine;
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::TestServer;

/// A question to the model `m`, with `fields` added to it.
fn asking(fields: Value) -> Value {
    let mut body =
        json!({ "model": "m", "max_tokens": 64, "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn serving(engine: &Arc<ScriptedEngine>) -> TestServer {
    TestServer::start(Arc::clone(engine) as Arc<dyn Engine>).await
}

async fn saying_hello() -> (Arc<ScriptedEngine>, TestServer) {
    let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]));
    let server = serving(&engine).await;
    (engine, server)
}

async fn post(server: &TestServer, path: &str, body: &Value) -> Response {
    let request = server.client.post(server.url(path)).header("anthropic-version", "2023-06-01");
    request.json(body).send().await.unwrap()
}

async fn create(server: &TestServer, body: &Value) -> Response {
    post(server, "/v1/messages", body).await
}

/// The body of a whole answer with its `id` checked and made the same in every run.
async fn message(response: Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    let mut body: Value = response.json().await.unwrap();
    check_id(&mut body);
    body
}

fn check_id(message: &mut Value) {
    let id = message["id"].as_str().unwrap();
    let suffix = id.strip_prefix("msg_").unwrap();
    assert!(suffix.len() == 24 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    message["id"] = "[id]".into();
}

/// The data of the events of a stream. The name of an event is the type of its data.
async fn events(response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let frames = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| {
            let (name, data) = frame.split_once('\n').unwrap();
            let mut data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str(), "{text}");
            if data["type"] == "message_start" {
                check_id(&mut data["message"]);
            }
            data
        })
        .collect()
}

fn warnings(response: &Response) -> Vec<String> {
    response
        .headers()
        .get_all("x-hob-warning")
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}
