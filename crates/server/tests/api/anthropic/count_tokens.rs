//! `POST /v1/messages/count_tokens`.

use std::sync::Arc;

use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use reqwest::Response;
use serde_json::{Value, json};

use super::{asking, post, saying_hello, warnings};
use crate::fixtures::{loopback_config, parts};
use crate::support::{TestServer, engine_at, models};

const PATH: &str = "/v1/messages/count_tokens";

async fn count(server: &TestServer, fields: Value) -> Response {
    let mut body = asking(fields);
    body.as_object_mut().unwrap().remove("max_tokens");
    let response = post(server, PATH, &body).await;
    assert_eq!(response.status(), 200);
    response
}

async fn tokens(response: Response) -> u64 {
    let body: Value = response.json().await.unwrap();
    let tokens = body["input_tokens"].as_u64().unwrap();
    assert_eq!(body, json!({ "input_tokens": tokens }));
    tokens
}

#[tokio::test]
async fn an_engine_that_can_count_counts() {
    let (engine, server) = saying_hello().await;
    let response = count(&server, json!({ "system": "kind" })).await;
    assert_eq!(warnings(&response), Vec::<String>::new());
    // To this engine every byte is a token.
    assert_eq!(tokens(response).await, 6);
    assert_eq!(engine.requests(), [], "nothing was generated");
}

#[tokio::test]
async fn the_prompt_of_an_agent_is_not_counted_and_the_answer_says_so() {
    let parts = parts(Arc::new(ScriptedEngine::saying(&["hi"])));
    let server = TestServer::start_system(parts, loopback_config()).await;
    let tool = json!({ "name": "look", "input_schema": { "type": "object" } });
    for (fields, expected) in [
        (json!({}), vec!["ignored=agent"]),
        (json!({ "agent": "none" }), Vec::new()),
        (json!({ "tools": [tool] }), Vec::new()),
    ] {
        assert_eq!(warnings(&count(&server, fields.clone()).await), expected, "{fields}");
    }
}

#[tokio::test]
async fn for_other_engines_the_number_is_an_estimate_and_says_so() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::json(404, r#"{"error":{"message":"no such route"}}"#),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::LITELLM)).await;
    let estimate = async |fields: Value| {
        let response = count(&server, fields).await;
        assert_eq!(warnings(&response), ["estimated"]);
        tokens(response).await
    };
    let plain = estimate(json!({})).await;
    let with_system = estimate(json!({ "system": "be very kind to everyone" })).await;
    let tool = json!({ "name": "look", "description": "looks around", "input_schema": { "type": "object" } });
    let with_tools = estimate(json!({ "tools": [tool] })).await;
    assert!(plain > 0 && with_system > plain && with_tools > plain, "{plain} {with_system} {with_tools}");
}

#[tokio::test]
async fn a_model_that_could_not_answer_cannot_be_counted_for() {
    let (_engine, server) = saying_hello().await;
    let response = post(&server, PATH, &asking(json!({ "model": "nope" }))).await;
    assert_eq!(response.status(), 404);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["type"], "not_found_error");
}
