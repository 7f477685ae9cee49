//! Sound and pictures: passed on to the engine that has the model.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::Engine;
use hob_engines::{Cloud, CloudOptions, Provider, Style};
use hob_testkit::{FakeServer, Recorded, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::support::{TestServer, engine_at};

const MODELS: &str = r#"{"object":"list","data":[{"id":"whisper"},{"id":"kokoro"},{"id":"flux"}]}"#;

/// An engine that answers each task with something of its own.
async fn engine() -> FakeServer {
    FakeServer::start(|request: &Recorded| match request.path.as_str() {
        "/v1/models" => Reply::json(200, MODELS),
        "/v1/audio/transcriptions" => Reply::json(200, r#"{"text":"hello"}"#),
        "/v1/audio/speech" => Reply::new(200, "audio/mpeg", vec![0xff, 0xfb, 0x00]).in_packets_of(1),
        "/v1/images/generations" => Reply::new(200, "text/html", "<script>"),
        _ => Reply::json(404, r#"{"detail":"Not Found"}"#),
    })
    .await
}

async fn post(server: &TestServer, path: &str, body: &Value) -> reqwest::Response {
    server.client.post(server.url(path)).json(body).send().await.unwrap()
}

const FORM_TYPE: &str = "multipart/form-data; boundary=edge";

fn form(parts: &[(&str, &str)]) -> String {
    let part = |(name, content): &(&str, &str)| {
        format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
    };
    parts.iter().map(part).collect::<String>() + "--edge--\r\n"
}

async fn send_form(server: &TestServer, path: &str, body: String) -> reqwest::Response {
    let request = server.client.post(server.url(path)).header("content-type", FORM_TYPE);
    request.body(body).send().await.unwrap()
}

#[tokio::test]
async fn a_form_with_sound_is_passed_on_part_by_part() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let body = form(&[("model", "whisper"), ("file", "RIFF\r\n\0"), ("language", "en")]);
    let response = send_form(&server, "/v1/audio/transcriptions", body.clone()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-hob-engine"]),
        (200, &"vllm".parse().unwrap())
    );
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "text": "hello" }));
    let sent = fake.requests().into_iter().find(|request| request.method == "POST").unwrap();
    let boundary =
        sent.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    assert_eq!(sent.text().replace(boundary, "edge"), body);
}

#[tokio::test]
async fn a_form_has_one_model() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let twice = form(&[("model", "whisper"), ("file", "x"), ("model", "kokoro")]);
    let response = send_form(&server, "/v1/audio/transcriptions", twice).await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["param"], "model");
    let hidden = form(&[("model", "whisper"), ("file", "x")])
        .replace("name=\"model\"", "name=\"model\"; name=\"other\"");
    assert_eq!(send_form(&server, "/v1/audio/transcriptions", hidden).await.status(), 400);
    assert!(fake.requests().iter().all(|request| request.method == "GET"), "nothing was passed on");
}

#[tokio::test]
async fn speech_comes_back_as_sound() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let body = json!({ "model": "kokoro", "input": "hi", "voice": "a", "own_field": 1 });
    let response = post(&server, "/v1/audio/speech", &body).await;
    assert_eq!(response.headers()["content-type"], "audio/mpeg");
    assert_eq!(response.bytes().await.unwrap().as_ref(), [0xff, 0xfb, 0x00]);
    let sent = fake.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&sent.text()).unwrap(), body);
}

#[tokio::test]
async fn an_answer_is_never_a_page_of_this_server() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let response = post(&server, "/v1/images/generations", &json!({ "model": "flux", "prompt": "a" })).await;
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn an_engine_without_such_models_says_so() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let response = send_form(&server, "/v1/images/edits", form(&[("model", "flux"), ("image", "x")])).await;
    assert_eq!(response.status(), 400);
    let body: Value = response.json().await.unwrap();
    assert_eq!(
        (&body["error"]["code"], &body["error"]["param"]),
        (&json!("unsupported_by_engine"), &json!("model"))
    );

    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let response = post(&server, "/v1/audio/speech", &json!({ "model": "m", "input": "hi" })).await;
    assert_eq!(response.status(), 400);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["message"], "scripted does not support 'speech'");
    assert_eq!(body["error"]["param"], "model");
    let response = post(&server, "/v1/audio/speech", &json!({ "model": "tts-1", "input": "hi" })).await;
    assert_eq!(response.status(), 404);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["message"], "scripted has no model 'tts-1'", "chat models are no alternative");
}

#[tokio::test]
async fn a_missing_model_is_explained_for_each_task() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for (path, body, example) in [
        ("/v1/audio/speech", json!({ "input": "hi" }), "such as tts-1. "),
        ("/v1/audio/speech", json!({ "input": "hi", "model": "default" }), "such as tts-1. "),
        ("/v1/images/generations", json!({ "prompt": "a" }), "such as gpt-image-1. "),
    ] {
        let response = post(&server, path, &body).await;
        assert_eq!(response.status(), 400, "{path} {body}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["param"], "model");
        assert!(answer["error"]["message"].as_str().unwrap().contains(example), "{path} {body}: {answer}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    for (body, status) in [
        (form(&[("file", "x")]), 400),
        (form(&[("model", " ")]), 400),
        (form(&[("model", "nope")]), 404),
        (form(&[("model", &"m".repeat(600))]), 400),
        ("no form".to_owned(), 400),
        (String::new(), 400),
    ] {
        let response = send_form(&server, "/v1/audio/transcriptions", body.clone()).await;
        assert_eq!(response.status(), status, "{body}");
    }
    let response = post(&server, "/v1/audio/transcriptions", &json!({ "model": "whisper" })).await;
    assert_eq!(response.status(), 415, "it is no form");
    for body in [json!({}), json!({ "model": 7 }), json!({ "model": null }), json!([])] {
        assert_eq!(post(&server, "/v1/audio/speech", &body).await.status(), 400, "{body}");
    }
    assert!(fake.requests().iter().all(|request| request.method == "GET"), "nothing was passed on");
}

#[tokio::test]
async fn a_form_over_the_limit_is_refused_whole() {
    let fake = engine().await;
    let config = ServerConfig { max_body_mb: 1, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    let sound = "x".repeat(2 << 20);
    let response =
        send_form(&server, "/v1/audio/transcriptions", form(&[("model", "whisper"), ("file", &sound)])).await;
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn a_foreign_page_sends_no_form() {
    let fake = engine().await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let request =
        server.client.post(server.url("/v1/audio/transcriptions")).header("content-type", FORM_TYPE);
    let request = request.header("origin", "https://evil.example");
    let response = request.body(form(&[("model", "whisper")])).send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert!(fake.requests().iter().all(|request| request.method == "GET"));
}

#[tokio::test]
async fn a_stranger_neither_spends_on_the_cloud_nor_sends_unknown_fields() {
    let strangers = || ServerConfig { allowed_hosts: vec!["hob.example".into()], ..ServerConfig::default() };
    let fake = engine().await;
    let key = |host: String| Provider { host, key: Some("k".to_owned().into()) };
    let options = CloudOptions { openai: key(format!("{}/v1", fake.url())), ..CloudOptions::default() };
    let cloud =
        TestServer::start_with(Arc::new(Cloud::new(options).unwrap()) as Arc<dyn Engine>, strangers()).await;
    let ask = async |server: &TestServer, path: &str, body: &Value| {
        let request = server.client.post(server.url(path)).header("host", "hob.example");
        request.json(body).send().await.unwrap()
    };
    let speech = json!({ "model": "kokoro", "input": "hi", "voice": "a", "own_field": 1 });
    assert_eq!(ask(&cloud, "/v1/audio/speech", &speech).await.status(), 403);
    assert!(fake.requests().iter().all(|request| request.method == "GET"), "nothing was spent");

    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), strangers()).await;
    let response = ask(&server, "/v1/audio/speech", &speech).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-hob-warning"]),
        (200, &"ignored=own_field".parse().unwrap())
    );
    let sent = fake.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert!(!sent.text().contains("own_field"), "{}", sent.text());

    let request =
        server.client.post(server.url("/v1/audio/transcriptions")).header("content-type", FORM_TYPE);
    let request = request.header("host", "hob.example");
    let body = form(&[("model", "whisper"), ("file", "x"), ("own_field", "1")]);
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["param"], "own_field");
}
