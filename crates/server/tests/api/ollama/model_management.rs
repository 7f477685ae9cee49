//! `POST /api/pull`, `DELETE /api/delete`, `POST /api/copy`.

use std::sync::Arc;

use hob_app::{AskService, ModelManagement};
use hob_config::Config;
use hob_core::Engine;
use hob_engines::pool::EnginePool;
use hob_engines::{Endpoint, EndpointOptions, Ollama};
use hob_server::ServerParts;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{lines, object, post, send, server, warnings};
use crate::fixtures::loopback_config;
use crate::key_fixtures::key_service;
use crate::support::{TestServer, plain_parts};

/// The parts of a server that may change the models of this engine, in a home of its own.
fn library_parts(engine: Arc<dyn Engine>, config: &Config) -> (ServerParts, TempDir) {
    let home = TempDir::new().unwrap();
    let pool = Arc::new(EnginePool::new(Arc::clone(&engine), Vec::new()));
    let models = ModelManagement::open(config, home.path(), Arc::clone(&pool)).unwrap();
    let system = Arc::new(AskService::new(plain_parts(engine)).with_pool(pool));
    (ServerParts { model_management: Some(Arc::new(models)), ..ServerParts::from(system) }, home)
}

async fn with_library(engine: Arc<dyn Engine>, config: &Config) -> (TestServer, TempDir) {
    let (parts, home) = library_parts(engine, config);
    (TestServer::start_parts(parts, loopback_config()).await, home)
}

/// The same in front of an Ollama.
async fn with_ollama(
    script: impl Fn(&str, &str) -> Reply + Send + Sync + 'static,
) -> (TestServer, FakeServer, TempDir) {
    let fake = FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        path => script(&request.method, path),
    })
    .await;
    let mut config = Config::default();
    config.engine.ollama.host = fake.url();
    let engine = Ollama::new(Endpoint::new(EndpointOptions::new("ollama", fake.url())).unwrap());
    let (server, home) = with_library(Arc::new(engine), &config).await;
    (server, fake, home)
}

#[tokio::test]
async fn a_download_by_ollama_is_passed_on_line_by_line() {
    const STEPS: &str = "{\"status\":\"pulling manifest\"}\n\
        {\"status\":\"pulling abc\",\"digest\":\"sha256:abc\",\"total\":10,\"completed\":4}\n\
        {\"status\":\"success\"}\n";
    let (server, fake, _home) = with_ollama(|_, _| Reply::ndjson(STEPS)).await;
    let response = post(&server, "/api/pull", &json!({ "name": "qwen3:8b", "insecure": true })).await;
    assert_eq!(warnings(&response), ["ignored=insecure"]);
    let told: Vec<Value> = STEPS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines(response).await, told);
    let asked: Value = serde_json::from_str(&fake.requests().last().unwrap().text()).unwrap();
    assert_eq!(asked, json!({ "model": "qwen3:8b" }));

    let whole = post(&server, "/api/pull", &json!({ "model": "qwen3:8b", "stream": false })).await;
    assert_eq!(object(whole).await, (200, json!({ "status": "success" })));
}

#[tokio::test]
async fn a_download_that_fails_never_ends_with_success() {
    let (server, _fake, _home) = with_ollama(|_, _| Reply::transcript("ollama/pull_offline")).await;
    let answer = lines(post(&server, "/api/pull", &json!({ "model": "tinyllama" })).await).await;
    assert_eq!(answer[0], json!({ "status": "pulling manifest" }));
    let error = answer[1]["error"].as_str().unwrap();
    assert!(answer.len() == 2 && error.contains("no such host"), "{answer:?}");
    let whole = post(&server, "/api/pull", &json!({ "model": "tinyllama", "stream": false })).await;
    assert_eq!(object(whole).await.0, 502);
}

#[tokio::test]
async fn hanging_up_stops_the_download() {
    let (server, fake, _home) =
        with_ollama(|_, _| Reply::ndjson("{\"status\":\"pulling manifest\"}\n").then_silence()).await;
    let mut response = post(&server, "/api/pull", &json!({ "model": "tinyllama" })).await;
    response.chunk().await.unwrap().expect("the stream has begun");
    drop(response);
    tokio::time::timeout(crate::support::WAIT_LIMIT, fake.hung_up(1)).await.expect("the download ends");
}

#[tokio::test]
async fn a_server_that_stops_ends_a_download_with_an_error() {
    let (server, _fake, _home) =
        with_ollama(|_, _| Reply::ndjson("{\"status\":\"pulling manifest\"}\n").then_silence()).await;
    let mut response = post(&server, "/api/pull", &json!({ "model": "tinyllama" })).await;
    response.chunk().await.unwrap().expect("the stream has begun");
    let stopped = tokio::spawn(server.stop());
    let rest = response.text().await.unwrap();
    assert!(rest.starts_with("{\"error\":\"the server is shutting down"), "{rest}");
    assert_eq!(stopped.await.unwrap(), 0);
}

#[tokio::test]
async fn changes_of_models_are_in_the_audit_log() {
    let fake = FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/pull" => Reply::ndjson("{\"status\":\"success\"}\n"),
        _ => Reply::new(200, "text/plain", ""),
    })
    .await;
    let mut config = Config::default();
    config.engine.ollama.host = fake.url();
    let engine = Ollama::new(Endpoint::new(EndpointOptions::new("ollama", fake.url())).unwrap());
    let (parts, _home) = library_parts(Arc::new(engine), &config);
    let keys = key_service();
    let parts = ServerParts { keys: Some(Arc::clone(&keys)), ..parts };
    let server = TestServer::start_parts(parts, loopback_config()).await;

    lines(post(&server, "/api/pull", &json!({ "model": "qwen3:8b" })).await).await;
    post(&server, "/api/copy", &json!({ "source": "smollm2", "destination": "mine" })).await;
    send(&server, Method::DELETE, "/api/delete", &json!({ "model": "smollm2" })).await;
    let refused = send(&server, Method::DELETE, "/api/delete", &json!({ "model": "nope" })).await;
    assert_eq!(refused.status(), 404);
    let noted: Vec<(String, String)> = keys
        .audit()
        .after(0, 9)
        .unwrap()
        .into_iter()
        .map(|entry| (entry.event.action, entry.event.subject))
        .collect();
    let change = |action: &str, subject: &str| (action.to_owned(), subject.to_owned());
    assert_eq!(
        noted,
        [
            change("model.pull", "qwen3:8b"),
            change("model.copy", "smollm2 as mine"),
            change("model.delete", "smollm2"),
        ]
    );
}

#[tokio::test]
async fn models_of_ollama_are_deleted_and_copied() {
    let (server, fake, _home) = with_ollama(|_, _| Reply::new(200, "text/plain", "")).await;
    let deleted = send(&server, Method::DELETE, "/api/delete", &json!({ "model": "smollm2" })).await;
    assert_eq!((deleted.status().as_u16(), deleted.text().await.unwrap()), (200, String::new()));
    let asked = fake.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", "/api/delete"));
    assert_eq!(asked.text(), r#"{"model":"smollm2:latest"}"#);

    let copied = post(&server, "/api/copy", &json!({ "source": "smollm2", "destination": "mine" })).await;
    assert_eq!(copied.status(), 200);
    let asked: Value = serde_json::from_str(&fake.requests().pop().unwrap().text()).unwrap();
    assert_eq!(asked, json!({ "source": "smollm2:latest", "destination": "mine" }));

    let missing = send(&server, Method::DELETE, "/api/delete", &json!({ "model": "nope" })).await;
    let (status, answer) = object(missing).await;
    assert_eq!(status, 404);
    assert!(answer["error"].as_str().unwrap().starts_with("model 'nope' not found"), "{answer}");
}

#[tokio::test]
async fn files_of_the_embedded_engine_are_deleted() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).called("embedded").with_models(&["m"]));
    let (server, home) = with_library(Arc::clone(&engine) as Arc<dyn Engine>, &Config::default()).await;
    let file = home.path().join("models/m.gguf");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, b"GGUF").unwrap();
    let deleted = send(&server, Method::DELETE, "/api/delete", &json!({ "name": "m:latest" })).await;
    assert_eq!((deleted.status().as_u16(), file.exists()), (200, false));
    server.client.get(server.url("/api/tags")).send().await.unwrap();
    // The list is requested again, and the model is not in memory any more either.
    assert!(engine.lists() >= 2);
    assert_eq!(engine.loaded(), ["unload m"]);
    let (status, answer) =
        object(post(&server, "/api/copy", &json!({ "source": "m", "destination": "n" })).await).await;
    assert_eq!(
        (status, answer),
        (400, json!({ "error": "'m' is a model of embedded, which does not let Hob copy models" }))
    );
}

#[tokio::test]
async fn a_name_that_nothing_here_can_download_says_what_can_be() {
    let embedded: Arc<dyn Engine> = Arc::new(ScriptedEngine::saying(&["hi"]).called("embedded"));
    let (server, _home) = with_library(embedded, &Config::default()).await;
    let (status, answer) = object(post(&server, "/api/pull", &json!({ "model": "qwen9:8b" })).await).await;
    assert_eq!(status, 404);
    assert!(answer["error"].as_str().unwrap().contains("is not in the built-in list"), "{answer}");
    let (status, answer) = object(post(&server, "/api/pull", &json!({ "model": "/etc/x.gguf" })).await).await;
    assert_eq!(status, 400);
    assert!(answer["error"].as_str().unwrap().starts_with("'/etc/x.gguf' is a path"), "{answer}");

    let vllm: Arc<dyn Engine> = Arc::new(ScriptedEngine::saying(&["hi"]).called("vllm"));
    let (server, _home) = with_library(vllm, &Config::default()).await;
    let (status, answer) = object(post(&server, "/api/pull", &json!({ "model": "qwen3:8b" })).await).await;
    assert_eq!(
        (status, answer),
        (
            400,
            json!({ "error": "vllm cannot download models. Download the model with the engine's own tools" })
        )
    );
}

#[tokio::test]
async fn a_server_without_a_library_says_so() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    let (status, answer) = object(post(&server, "/api/pull", &json!({ "model": "m" })).await).await;
    assert_eq!(status, 503);
    assert!(answer["error"].as_str().unwrap().starts_with("this server cannot download"), "{answer}");
}
