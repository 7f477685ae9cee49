//! `POST /v1/responses/input_tokens`, and what is beside it.

use std::sync::Arc;

use hob_core::Engine;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::{StoringServer, asking, error_of, json_of, warnings_of};

const PATH: &str = "/v1/responses/input_tokens";

#[tokio::test]
async fn the_tokens_of_a_response_are_counted_without_answering() {
    let engine = Arc::new(ScriptedEngine::saying(&["Hello"]));
    let server = StoringServer::start(Arc::clone(&engine) as Arc<dyn Engine>).await;
    let counted = server.post(PATH, &asking(json!({ "instructions": "kind" }))).await;
    assert_eq!(warnings_of(&counted), Vec::<String>::new());
    // To this engine every byte is a token.
    assert_eq!(json_of(counted).await, json!({ "object": "response.input_tokens", "input_tokens": 6 }));
    assert_eq!(engine.requests(), [], "nothing was generated");
}

#[tokio::test]
async fn a_response_that_is_continued_is_counted_too() {
    let server = StoringServer::saying(&["Hello"]).await;
    let first = json_of(server.create(json!({})).await).await;
    let counted = server.post(PATH, &asking(json!({ "previous_response_id": first["id"] }))).await;
    assert_eq!(json_of(counted).await["input_tokens"], "hiHellohi".len());
}

#[tokio::test]
async fn what_cannot_be_counted_is_refused_by_its_field() {
    let server = StoringServer::saying(&["Hello"]).await;
    let unknown = server.post(PATH, &asking(json!({ "model": "nope" }))).await;
    assert_eq!(error_of(unknown).await, (404, json!("model"), json!("model_not_found")));
    let empty = server.post(PATH, &asking(json!({ "input": [] }))).await;
    assert_eq!(error_of(empty).await.0, 400);
}

#[tokio::test]
async fn compaction_does_not_exist_and_is_not_taken_for_a_response() {
    let server = StoringServer::saying(&["Hello"]).await;
    let response = server.post("/v1/responses/compact", &asking(json!({}))).await;
    assert_eq!(response.status(), 404);
    let body: Value = response.json().await.unwrap();
    assert_eq!(
        body["error"]["message"],
        "/v1/responses/compact does not exist. GET /openapi.json lists all paths"
    );
}
