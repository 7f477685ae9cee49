//! `POST /v1/feedback`.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::openapi::{assert_fits, document_of};
use crate::fixtures::{loopback_config, reached_from_network};
use crate::openai::routing::{RoutingServer, question};

#[tokio::test]
async fn an_answer_is_rated_by_its_id() {
    let server = RoutingServer::open(loopback_config()).await;
    let document = document_of(&server.http).await;
    let answer: Value = server.ask(question("auto", "Hello", false)).await.json().await.unwrap();
    let rating = json!({ "id": answer["id"], "rating": "good" });
    assert_fits(&document, "FeedbackRequest", &rating);
    let (status, rated) = server.rate(&rating).await;
    assert_eq!(status, StatusCode::OK, "{rated}");
    assert_fits(&document, "Feedback", &rated);
    let expected = json!({
        "id": answer["id"],
        "rating": "good",
        "model": "small:1b",
        "engine": "scripted",
        "learnt": true,
    });
    assert_eq!(rated, expected);
}

#[tokio::test]
async fn an_invalid_rating_names_its_field() {
    let server = RoutingServer::open(loopback_config()).await;
    for (body, status, param) in [
        (json!({ "rating": "good" }), 400, "id"),
        (json!({ "id": "", "rating": "good" }), 400, "id"),
        (json!({ "id": "chatcmpl-1" }), 400, "rating"),
        (json!({ "id": "chatcmpl-1", "rating": "splendid" }), 400, "rating"),
        (json!({ "id": 7, "rating": "good" }), 400, "id"),
        (json!({ "id": "chatcmpl-1", "rating": "good" }), 404, "id"),
        (json!({ "id": "x".repeat(1_000_000), "rating": "bad" }), 404, "id"),
    ] {
        let (found, error) = server.rate(&body).await;
        assert_eq!((found.as_u16(), &error["error"]["param"]), (status, &json!(param)), "{error}");
        assert!(error.to_string().len() < 1000);
    }
}

#[tokio::test]
async fn strangers_cannot_rate_answers() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let rating = json!({ "id": "chatcmpl-1", "rating": "bad" });
    let refused = server.client.post(server.url("/v1/feedback")).json(&rating).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}
