//! `/openapi.json` is complete and correct: it has every route, everything in it answers, and the answers fit its schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::asking;
use crate::support::TestServer;

async fn server_and_document() -> (TestServer, Value) {
    let engine = ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["m"]);
    let server = TestServer::start(Arc::new(engine)).await;
    let document = document_of(&server).await;
    (server, document)
}

pub async fn document_of(server: &TestServer) -> Value {
    let response = server.client.get(server.url("/openapi.json")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    response.json().await.unwrap()
}

/// Asserts that `value` fits the schema of that name.
pub fn assert_fits(document: &Value, schema: &str, value: &Value) {
    let root =
        json!({ "$ref": format!("#/components/schemas/{schema}"), "components": document["components"] });
    let validator = jsonschema::draft202012::new(&root).unwrap();
    let faults: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{schema}: {value}");
}

#[tokio::test]
async fn the_document_names_its_version() {
    let (_server, document) = server_and_document().await;
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["servers"], json!([{ "url": "/" }]), "whatever its port is");
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[tokio::test]
async fn every_route_is_in_the_document_and_nothing_else() {
    let (_server, document) = server_and_document().await;
    let routes: BTreeSet<String> = include_str!("../../../src/router.rs")
        .split("\n        (\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        // The document cannot express "and everything below".
        .map(|path| path.replace("{*", "{"))
        .collect();
    let described: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    assert!(!routes.is_empty());
    assert_eq!(described, routes);
}

#[tokio::test]
async fn every_operation_in_the_document_answers() {
    let (server, document) = server_and_document().await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let url = server.url(&path.replace("{id}", "m"));
            let status = server.client.request(method.clone(), url).send().await.unwrap().status();
            assert!(![404, 405].contains(&status.as_u16()), "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn every_operation_lists_the_refusals_of_a_wrong_host() {
    let (server, document) = server_and_document().await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (host, expected) in [("user@localhost", 400), ("evil.example", 403)] {
                let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
                let request = server.client.request(method.clone(), server.url(path)).header("host", host);
                let status = request.send().await.unwrap().status();
                assert_eq!(status, expected, "{method} {path}");
                let listed = &operation["responses"][status.as_str()];
                assert!(listed.is_object(), "{method} {path} does not list {status}");
            }
        }
    }
}

#[tokio::test]
async fn a_stranger_may_send_the_listed_fields_of_the_parts_of_a_message() {
    let (server, document) = server_and_document().await;
    let mut kinds = Vec::new();
    for part in document["components"]["schemas"]["ContentPart"]["anyOf"].as_array().unwrap() {
        let kind = part["properties"]["type"]["const"].as_str().unwrap();
        let Some(listed) = part["properties"][kind]["properties"].as_object() else { continue };
        // Only the owner may name an address.
        let names = listed.keys().filter(|name| *name != "file_url");
        let content: Value = names.map(|name| (name.clone(), json!("data:text/plain;base64,aGk="))).collect();
        let mut sent = json!({ "type": kind });
        sent[kind] = content;
        let body = asking(json!({ "messages": [{ "role": "user", "content": [sent] }] }));
        assert_fits(&document, "ChatRequest", &body);
        let request = server.client.post(server.url("/v1/chat/completions")).json(&body);
        let response = request.header("x-forwarded-for", "203.0.113.7").send().await.unwrap();
        assert_eq!(response.status(), 200, "{body}: {}", response.text().await.unwrap());
        kinds.push(kind);
    }
    assert_eq!(kinds, ["image_url", "input_audio", "file", "video_url", "audio_url"]);
}

#[tokio::test]
async fn requests_and_answers_fit_their_schemas() {
    let (server, document) = server_and_document().await;
    let request = asking(json!({
        "temperature": 0.5,
        "max_tokens": null,
        "stop": ["a"],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
        "tool_choice": "auto",
        "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": { "type": "object" } } },
        "top_k": 40,
    }));
    assert_fits(&document, "ChatRequest", &request);
    let response = server.chat(&request).await;
    assert_eq!(response.status(), 200);
    assert_fits(&document, "ChatCompletion", &response.json().await.unwrap());

    let streaming = asking(json!({ "stream": true, "stream_options": { "include_usage": true } }));
    assert_fits(&document, "ChatRequest", &streaming);
    let text = server.chat(&streaming).await.text().await.unwrap();
    let chunks: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: {")).collect();
    assert_eq!(chunks.len(), 5, "{text}");
    for chunk in chunks {
        assert_fits(&document, "ChatCompletionChunk", &serde_json::from_str(&format!("{{{chunk}")).unwrap());
    }

    for format in [json!("float"), json!("base64"), json!(null)] {
        let request = json!({ "model": "m", "input": ["a"], "encoding_format": format, "user": "ada" });
        assert_fits(&document, "EmbeddingsRequest", &request);
        let response = server.client.post(server.url("/v1/embeddings")).json(&request).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_fits(&document, "EmbeddingList", &response.json().await.unwrap());
    }

    for (path, request, request_schema, answer_schema) in [
        (
            "/v1/completions",
            json!({ "model": "m", "prompt": "a", "logprobs": 1 }),
            "CompletionRequest",
            "TextCompletion",
        ),
        (
            "/v1/completions",
            json!({ "model": "m", "prompt": [[1, 2]], "stream": false }),
            "CompletionRequest",
            "TextCompletion",
        ),
        (
            "/v1/rerank",
            json!({ "model": "m", "query": "q", "documents": ["a"], "return_documents": true }),
            "RerankRequest",
            "Ranking",
        ),
        ("/tokenize", json!({ "content": "é", "with_pieces": true }), "TokenizeRequest", "TokenList"),
        ("/tokenize", json!({ "prompt": "a", "return_token_strs": true }), "TokenizeRequest", "TokenList"),
        ("/detokenize", json!({ "tokens": [104] }), "DetokenizeRequest", "DetokenizedText"),
    ] {
        assert_fits(&document, request_schema, &request);
        let response = server.client.post(server.url(path)).json(&request).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_fits(&document, answer_schema, &response.json().await.unwrap());
    }
    let request =
        json!({ "model": "m", "prompt": "a", "stream": true, "stream_options": { "include_usage": true } });
    let response = server.client.post(server.url("/v1/completions")).json(&request).send().await.unwrap();
    let text = response.text().await.unwrap();
    let chunks: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: {")).collect();
    assert_eq!(chunks.len(), 4, "{text}");
    for chunk in chunks {
        assert_fits(&document, "TextCompletion", &serde_json::from_str(&format!("{{{chunk}")).unwrap());
    }

    let asked = json!({ "model": "m", "input": "hi", "tools": [{ "type": "custom", "name": "c" }], "include": ["reasoning.encrypted_content"] });
    assert_fits(&document, "ResponseRequest", &asked);
    let create = |body: Value| server.client.post(server.url("/v1/responses")).json(&body).send();
    assert_fits(&document, "Response", &create(asked).await.unwrap().json().await.unwrap());
    let text =
        create(json!({ "model": "m", "input": "hi", "stream": true })).await.unwrap().text().await.unwrap();
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(events.len(), 10, "{text}");
    for event in events {
        assert_fits(&document, "ResponseEvent", &serde_json::from_str(event).unwrap());
    }

    let request = json!({
        "model": "m", "max_tokens": 9, "system": "be kind", "thinking": { "type": "adaptive" },
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
        "tools": [{ "name": "f", "input_schema": { "type": "object" } }],
    });
    assert_fits(&document, "MessagesRequest", &request);
    let post = async |path: &str, body: &Value| {
        server.client.post(server.url(path)).json(body).send().await.unwrap()
    };
    let response = post("/v1/messages", &request).await;
    assert_fits(&document, "AnthropicMessage", &response.json().await.unwrap());
    let counted = post("/v1/messages/count_tokens", &request).await;
    assert_fits(&document, "MessageTokensCount", &counted.json().await.unwrap());
    let refused = post("/v1/messages", &json!({})).await;
    assert_fits(&document, "AnthropicError", &refused.json().await.unwrap());
    let mut streaming = request.clone();
    streaming["stream"] = json!(true);
    let text = post("/v1/messages", &streaming).await.text().await.unwrap();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        assert_fits(&document, "MessageEvent", &serde_json::from_str(data).unwrap());
    }
    let models = server.client.get(server.url("/v1/models")).header("anthropic-version", "2023-06-01");
    assert_fits(&document, "AnthropicModelList", &models.send().await.unwrap().json().await.unwrap());

    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    assert_fits(&document, "ModelList", &get("/v1/models").await);
    assert_fits(&document, "Model", &get("/v1/models/m").await);
    assert_fits(&document, "Error", &get("/v1/models/nope").await);
    assert_fits(&document, "Error", &get("/nothing").await);
    assert_fits(&document, "Error", &server.chat(&json!({})).await.json().await.unwrap());
}

#[tokio::test]
async fn requests_that_violate_the_document_are_refused() {
    let (server, document) = server_and_document().await;
    let root = json!({ "$ref": "#/components/schemas/ChatRequest", "components": document["components"] });
    let validator = jsonschema::draft202012::new(&root).unwrap();
    for wrong in [
        json!({ "model": null }),
        json!({ "messages": [] }),
        json!({ "messages": [{ "role": "robot", "content": "x" }] }),
        json!({ "temperature": 2.5 }),
        json!({ "temperature": "hot" }),
        json!({ "max_tokens": 0 }),
        json!({ "n": 0 }),
        json!({ "top_p": 2 }),
        json!({ "tools": [{ "type": "web_search" }] }),
        json!({ "tool_choice": "perhaps" }),
        json!({ "response_format": { "type": "xml" } }),
    ] {
        let body = asking(wrong);
        assert!(!validator.is_valid(&body), "{body}");
        assert_eq!(server.chat(&body).await.status(), 400, "{body}");
    }
}
