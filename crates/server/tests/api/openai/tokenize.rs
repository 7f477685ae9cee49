//! `POST /tokenize` and `POST /detokenize` in the forms of llama.cpp and vLLM.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::support::{TestServer, engine_at, models};

async fn served() -> TestServer {
    TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await
}

async fn post(server: &TestServer, path: &str, body: &Value) -> (u16, Value) {
    let response = server.client.post(server.url(path)).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_text_is_split_for_clients_of_llama_cpp_and_of_vllm() {
    let server = served().await;
    let plain = json!({ "tokens": [104, 105], "count": 2, "max_model_len": 2048 });
    for body in [
        json!({ "content": "hi" }),
        json!({ "content": "hi", "add_special": true, "parse_special": false }),
        json!({ "model": "m", "prompt": "hi" }),
        json!({ "model": "default", "prompt": "hi", "add_special_tokens": false }),
        json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] }),
    ] {
        assert_eq!(post(&server, "/tokenize", &body).await, (200, plain.clone()), "{body}");
    }
    let mut with_pieces = plain.clone();
    with_pieces["tokens"] = json!([{ "id": 104, "piece": "h" }, { "id": 105, "piece": "i" }]);
    let body = json!({ "content": "hi", "with_pieces": true });
    assert_eq!(post(&server, "/tokenize", &body).await.1, with_pieces);
    let mut with_strings = plain;
    with_strings["token_strs"] = json!(["h", "i"]);
    let body = json!({ "model": "m", "prompt": "hi", "return_token_strs": true });
    assert_eq!(post(&server, "/tokenize", &body).await.1, with_strings);
    let body = json!({ "content": "é", "with_pieces": true });
    let (_, answer) = post(&server, "/tokenize", &body).await;
    assert_eq!(answer["tokens"][0], json!({ "id": 195, "piece": [195] }), "no whole character");
}

#[tokio::test]
async fn tokens_are_joined_for_clients_of_both() {
    let server = served().await;
    let answer = (200, json!({ "content": "hi", "prompt": "hi" }));
    assert_eq!(post(&server, "/detokenize", &json!({ "tokens": [104, 105] })).await, answer);
    assert_eq!(post(&server, "/detokenize", &json!({ "model": "m", "tokens": [104, 105] })).await, answer);
}

#[tokio::test]
async fn what_is_no_text_and_no_tokens_is_refused_by_its_field() {
    let server = served().await;
    for (path, body, param) in [
        ("/tokenize", json!({}), "prompt"),
        ("/tokenize", json!({ "content": 7 }), "content"),
        ("/tokenize", json!({ "content": "a", "prompt": "b" }), "prompt"),
        ("/tokenize", json!({ "prompt": "b", "messages": [] }), "messages"),
        ("/tokenize", json!({ "model": "nope", "prompt": "b" }), "model"),
        (
            "/tokenize",
            json!({ "messages": [{ "role": "user" }], "add_generation_prompt": false }),
            "add_generation_prompt",
        ),
        ("/detokenize", json!({}), "tokens"),
        ("/detokenize", json!({ "tokens": [-1] }), "tokens[0]"),
        ("/detokenize", json!({ "tokens": "hi" }), "tokens"),
        ("/detokenize", json!({ "tokens": [1], "model": "m".repeat(600) }), "model"),
    ] {
        let (status, answer) = post(&server, path, &body).await;
        assert!(status == 400 || status == 404, "{body}: {status} {answer}");
        assert_eq!(answer["error"]["param"], param, "{body}: {answer}");
    }
}

#[tokio::test]
async fn no_route_that_counts_passes_the_address_of_a_picture_or_file_on() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::json(200, r#"{"count":1,"max_model_len":8,"tokens":[1]}"#),
    })
    .await;
    let config = ServerConfig { allowed_hosts: vec!["hob.example".into()], ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    // The address of the engine itself, which no caller may make Hob fetch from.
    let picture = format!("{}/secret.png", fake.url());
    for host in ["hob.example", "localhost"] {
        for url in [picture.as_str(), "file:///etc/passwd"] {
            let chat = json!({ "type": "image_url", "image_url": { "url": url } });
            let block = json!({ "type": "image", "source": { "type": "url", "url": url } });
            let item = json!({ "type": "input_image", "image_url": url });
            let file = json!({ "type": "file", "file": { "file_url": url } });
            let message = |part: Value| json!([{ "role": "user", "content": [part] }]);
            for (path, body) in [
                ("/tokenize", json!({ "model": "m", "messages": message(chat) })),
                ("/tokenize", json!({ "model": "m", "messages": message(file) })),
                ("/v1/messages/count_tokens", json!({ "model": "m", "messages": message(block) })),
                ("/v1/responses/input_tokens", json!({ "model": "m", "input": message(item) })),
            ] {
                let request = server.client.post(server.url(path)).header("host", host).json(&body);
                let response = request.send().await.unwrap();
                assert_eq!(response.status(), 400, "{host} {path} {url}");
            }
        }
    }
    let is_harmless = |method: &str, path: &str| method == "GET" && path != "/secret.png";
    assert!(fake.requests().iter().all(|request| is_harmless(&request.method, &request.path)));
}
