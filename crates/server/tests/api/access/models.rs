//! A key that allows some models: no route that asks a model gives a member another one.

use std::sync::Arc;

use hob_app::AskServiceParts;
use hob_core::Engine;
use reqwest::Method;
use serde_json::{Value, json};

use super::routes::routes;
use super::{Team, answer, get, post, request};
use crate::client::asking;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

/// What the key does not allow.
const FORBIDDEN: &str = "llama3:8b";

enum Body {
    Json(Value),
    /// A form with the field `model` and a file.
    Form,
}

/// A good request for a model on a route.
fn body(pattern: &str, model: &str) -> Body {
    let ask = |fields: Value| {
        let mut body = json!({ "model": model });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        Body::Json(body)
    };
    match pattern {
        "/v1/chat/completions" => Body::Json(asking(json!({ "model": model }))),
        "/api/chat" => Body::Json(asking(json!({ "model": model, "stream": false }))),
        "/v1/messages" | "/v1/messages/count_tokens" => {
            Body::Json(asking(json!({ "model": model, "max_tokens": 5 })))
        }
        "/v1/completions" | "/v1/images/generations" | "/tokenize" | "/api/generate" | "/api/embeddings" => {
            ask(json!({ "prompt": "hi" }))
        }
        "/v1/embeddings" | "/api/embed" | "/v1/responses" | "/v1/responses/input_tokens" => {
            ask(json!({ "input": "hi" }))
        }
        "/v1/audio/speech" => ask(json!({ "input": "hi", "voice": "alloy" })),
        "/v1/rerank" | "/v2/rerank" | "/rerank" => ask(json!({ "query": "q", "documents": ["d"] })),
        "/detokenize" => ask(json!({ "tokens": [104, 105] })),
        "/api/show" => ask(json!({})),
        "/v1/audio/transcriptions" | "/v1/audio/translations" | "/v1/images/edits" => Body::Form,
        _ => panic!("{pattern} asks a model. Add a request for it to this test"),
    }
}

/// The form for sound and pictures, as browsers send it.
fn form(pattern: &str, model: &str) -> String {
    let file = if pattern.starts_with("/v1/images") { "image" } else { "file" };
    let part = |head: &str, content: &str| {
        format!("--limit\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    };
    [
        part("name=\"model\"", model),
        part("name=\"prompt\"", "hi"),
        part(&format!("name=\"{file}\"; filename=\"a.bin\""), "content"),
        "--limit--\r\n".to_owned(),
    ]
    .concat()
}

/// The answers of all routes that ask a model, with their patterns.
async fn answers(server: &TestServer, model: &str, key: &str) -> Vec<(&'static str, u16, Value)> {
    let is_asking = |rule: &str, pattern: &str| {
        // A document is read without a model.
        (rule == "ask" && pattern != "/pages/document")
            || ["/v1/responses", "/v1/responses/input_tokens"].contains(&pattern)
    };
    let asking = routes()
        .into_iter()
        .filter(|route| is_asking(route.rule, route.pattern) && route.methods.contains(&Method::POST));
    let mut answers = Vec::new();
    for route in asking {
        let asked = request(server, &Method::POST, route.pattern, key);
        let asked = match body(route.pattern, model) {
            Body::Json(body) => asked.json(&body),
            Body::Form => server
                .client
                .post(server.url(route.pattern))
                .bearer_auth(key)
                .header("content-type", "multipart/form-data; boundary=limit")
                .body(form(route.pattern, model)),
        };
        let (status, body) = answer(asked.send().await.unwrap()).await;
        answers.push((route.pattern, status, body));
    }
    answers
}

#[tokio::test]
async fn an_unknown_model_is_answered_without_the_names_of_models_that_the_key_does_not_allow() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "models": ["qwen*"] })).await;
    for (pattern, status, body) in answers(&server, "nope", &ana).await {
        assert_eq!((status, body.to_string().contains(FORBIDDEN)), (404, false), "{pattern}: {body}");
    }
    let load = request(&server, &Method::POST, "/api/generate", &ana).json(&json!({ "model": "nope" }));
    let (status, body) = answer(load.send().await.unwrap()).await;
    assert_eq!((status, body.to_string().contains(FORBIDDEN)), (404, false), "{body}");
}

#[tokio::test]
async fn no_route_gives_a_member_a_model_that_its_key_does_not_allow() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "models": ["qwen*"] })).await;
    for (pattern, status, body) in answers(&server, FORBIDDEN, &ana).await {
        // What may not be used is not described either.
        let expected = if pattern == "/api/show" { 404 } else { 403 };
        assert_eq!(status, expected, "{pattern}: {body}");
    }
    // Without a question, Ollama's requests load the model.
    let load = json!({ "model": FORBIDDEN });
    for path in ["/api/generate", "/api/chat"] {
        let asked = request(&server, &Method::POST, path, &ana).json(&load);
        assert_eq!(asked.send().await.unwrap().status(), 403, "{path}");
    }
    assert_eq!(get(&server, &format!("/v1/models/{FORBIDDEN}"), &ana).await.0, 404);
    for list in ["/v1/models", "/api/tags", "/api/ps"] {
        let (status, body) = get(&server, list, &ana).await;
        assert_eq!((status, body.to_string().contains(FORBIDDEN)), (200, false), "{list}: {body}");
    }
    let engine = &team.engine;
    let reached = [
        engine.requests().len(),
        engine.embed_requests().len(),
        engine.completion_requests().len(),
        engine.loaded().len(),
    ];
    assert_eq!(reached, [0; 4], "the engine was not asked");
}

#[tokio::test]
async fn a_key_for_auto_alone_sees_auto_in_the_lists() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "models": ["auto"] })).await;
    for (path, entries, id) in [("/v1/models", "data", "id"), ("/api/tags", "models", "name")] {
        let (status, list) = get(&server, path, &ana).await;
        assert_eq!(status, 200, "{list}");
        let entries = list[entries].as_array().unwrap();
        let ids: Vec<&str> = entries.iter().map(|entry| entry[id].as_str().unwrap()).collect();
        assert_eq!(ids.iter().map(|id| id.trim_end_matches(":latest")).collect::<Vec<_>>(), ["auto"]);
    }
}

#[tokio::test]
async fn a_name_of_hobs_own_is_shown_only_to_a_key_that_may_use_it() {
    let team = Team::new();
    let parts = |default: &str| AskServiceParts {
        default_model: Some(default.to_owned()),
        ..plain_parts(Arc::clone(&team.engine) as Arc<dyn Engine>)
    };
    let steady = TestServer::start_parts(team.parts_with(parts("qwen3:8b")), loopback_config()).await;
    let routed = TestServer::start_parts(team.parts_with(parts("auto")), loopback_config()).await;
    // What `auto` and `default` show where the default is a model, and where it is `auto`. Nothing is an error 404.
    for (models, of_model, of_auto) in [
        ("*", ["auto", "qwen3:8b"], ["auto", "auto"]),
        ("qwen*", ["", "qwen3:8b"], ["", ""]),
        ("llama*", ["", ""], ["", ""]),
        ("auto", ["auto", ""], ["auto", "auto"]),
        ("default", ["", "default"], ["", "default"]),
    ] {
        let name = models.trim_end_matches('*');
        let key =
            team.member(if name.is_empty() { "all" } else { name }, json!({ "models": [models] })).await;
        for (server, expected) in [(&steady, of_model), (&routed, of_auto)] {
            for (asked, expected) in ["auto", "default"].into_iter().zip(expected) {
                let path = format!("/v1/models/{asked}");
                let plain = request(server, &Method::GET, &path, &key);
                let of_anthropic =
                    request(server, &Method::GET, &path, &key).header("anthropic-version", "2023-06-01");
                for sent in [plain, of_anthropic] {
                    let (status, shown) = answer(sent.send().await.unwrap()).await;
                    let id = shown["id"].as_str().unwrap_or_default();
                    let wanted = if expected.is_empty() { 404 } else { 200 };
                    assert_eq!((status, id), (wanted, expected), "{models} {asked}: {shown}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_error_for_an_unknown_model_names_only_what_the_key_allows_and_whom_to_ask() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "models": ["qwen*"] })).await;
    let (status, refused) =
        post(&server, "/v1/chat/completions", &ana, &asking(json!({ "model": "gpt-4" }))).await;
    assert_eq!(
        (status, refused["error"]["message"].as_str()),
        (
            404,
            Some(
                "scripted has no model 'gpt-4'; it has qwen3:8b. Ask the owner of this server for this model"
            )
        )
    );
}
