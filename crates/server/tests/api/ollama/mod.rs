mod chat;
mod content_type;
mod embed;
mod fields;
mod generate;
mod hostile;
mod model_management;
mod models;
mod recorded;
mod requests;
mod root;

use hob_testkit::ScriptedEngine;
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::support::TestServer;

/// A server in front of an engine of this kind.
async fn server(engine: ScriptedEngine) -> (TestServer, Arc<ScriptedEngine>) {
    let engine = Arc::new(engine);
    (TestServer::start(Arc::clone(&engine) as Arc<dyn hob_core::Engine>).await, engine)
}

async fn send(server: &TestServer, method: Method, path: &str, body: &Value) -> Response {
    server.client.request(method, server.url(path)).json(body).send().await.unwrap()
}

async fn post(server: &TestServer, path: &str, body: &Value) -> Response {
    send(server, Method::POST, path, body).await
}

/// The status and the body of an answer that is one object.
async fn object(response: Response) -> (u16, Value) {
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/json"));
    (response.status().as_u16(), response.json().await.unwrap())
}

/// The lines of a stream.
async fn lines(response: Response) -> Vec<Value> {
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/x-ndjson".parse().unwrap())
    );
    let text = response.text().await.unwrap();
    assert!(text.ends_with('\n'), "{text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An answer with its times checked and made the same in every run.
fn timeless(mut answer: Value) -> Value {
    let fields: &mut Map<String, Value> = answer.as_object_mut().unwrap();
    if let Some(time) = fields.get_mut("created_at") {
        let text = time.as_str().unwrap();
        assert!(text.starts_with("20") && text.ends_with('Z') && text.contains('T'), "{text}");
        *time = json!("[time]");
    }
    for (name, value) in fields.iter_mut().filter(|(name, _)| name.ends_with("_duration")) {
        assert!(value.is_u64(), "{name}: {value}");
        *value = json!(0);
    }
    answer
}

/// What an answer says of its request.
fn warnings(response: &Response) -> Vec<&str> {
    response.headers().get_all("x-hob-warning").iter().map(|value| value.to_str().unwrap()).collect()
}
