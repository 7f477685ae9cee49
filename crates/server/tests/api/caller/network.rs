//! Strangers on another machine, which is a network namespace.

use std::sync::Arc;

use hob_app::AskService;
use hob_config::ServerConfig;
use hob_core::{Delta, Engine, EngineError};
use hob_engines::{EndpointOptions, Style};
use hob_testkit::{FakeServer, Namespace, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::{calculating, offered, parts, parts_reached_from_network, reached_from_network};
use crate::support::{TestServer, engine_at, engine_with, models};

#[tokio::test]
async fn a_caller_on_another_machine_may_only_ask() {
    let namespace =
        Namespace::new().unwrap_or_else(|reason| panic!("strangers need a network namespace: {reason}"));
    let engine = calculating();
    let config = ServerConfig { host: namespace.host().to_string(), port: 0, ..ServerConfig::default() };
    let server = TestServer::start_system(parts(engine.clone()), config).await;
    let (url, body) = (server.url(""), asking(json!({})).to_string());
    let answers = tokio::task::spawn_blocking(move || {
        let curl = |path: &str, more: &[&str]| {
            let url = format!("{url}{path}");
            namespace.curl(&[&["-o", "/dev/stdout", "-w", "\n%{http_code}", &url], more].concat())
        };
        let json = ["-H", "content-type: application/json"];
        let post = |path: &str, body: &str| curl(path, &[&json, &["-d", body][..]].concat());
        [
            curl("/v1/models", &[]),
            post("/v1/chat/completions", &body),
            // A local host name or a loopback address in the Host header changes nothing.
            curl("/metrics", &["-H", "host: localhost"]),
            curl("/metrics", &["-H", "host: 127.0.0.1"]),
            curl("/v1/events", &[]),
            curl("/v1/memory/stats", &[]),
            curl("/v1/tasks", &[]),
            post("/v1/feedback", "{}"),
            post("/v1/channels/send", "{}"),
        ]
    })
    .await
    .unwrap();
    let statuses = answers.each_ref().map(|answer| answer.rsplit('\n').next().unwrap());
    assert_eq!(statuses, ["200", "200", "403", "403", "403", "403", "403", "403", "403"], "{answers:?}");
    assert_eq!(offered(&engine.requests()[0]), ["calculator"]);
}

async fn error_of(answer: reqwest::Response) -> (u16, Value) {
    (answer.status().as_u16(), answer.json::<Value>().await.unwrap()["error"].take())
}

#[tokio::test]
async fn a_stranger_gets_a_short_message_when_an_engine_fails() {
    // Nothing listens there.
    let address = "http://127.0.0.1:9";
    let engine = || engine_with(EndpointOptions::new("vllm", address), Style::VLLM);
    let here = TestServer::start(engine()).await;
    let (status, error) = error_of(here.chat(&asking(json!({}))).await).await;
    assert_eq!((status, &error["code"]), (502, &json!("engine_unreachable")));
    assert!(error["message"].as_str().unwrap().contains("127.0.0.1:9"), "the owner sees all: {error}");

    let system = Arc::new(AskService::new(parts(engine())));
    let outside = parts_reached_from_network(system, ServerConfig::default()).await;
    let get = async |path: &str| outside.client.get(outside.url(path)).send().await.unwrap();
    let embeddings =
        outside.client.post(outside.url("/v1/embeddings")).json(&json!({ "model": "m", "input": "a" }));
    for answer in [
        outside.chat(&asking(json!({}))).await,
        outside.chat(&asking(json!({ "stream": true }))).await,
        get("/v1/models").await,
        get("/v1/models/m").await,
        embeddings.send().await.unwrap(),
    ] {
        let url = answer.url().clone();
        let (status, error) = error_of(answer).await;
        assert_eq!((status, &error["code"]), (502, &json!("engine_unreachable")), "{url}");
        assert_eq!(
            error["message"], "the engine does not answer. The reason is in the server's log",
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_stranger_does_not_see_an_engines_error_message() {
    const WORDS: &str = "CUDA error at /home/ada/engine.cu:17";
    let failing = || {
        FakeServer::start(|request| match request.method.as_str() {
            "GET" => models(),
            _ => Reply::json(500, json!({ "error": { "message": WORDS } }).to_string()),
        })
    };
    let (one, other) = (failing().await, failing().await);
    let here = TestServer::start(engine_at(&one, Style::VLLM)).await;
    assert!(here.chat(&asking(json!({}))).await.text().await.unwrap().contains(WORDS));
    let system = Arc::new(AskService::new(parts(engine_at(&other, Style::VLLM))));
    let outside = parts_reached_from_network(system, ServerConfig::default()).await;
    let (status, error) = error_of(outside.chat(&asking(json!({}))).await).await;
    assert_eq!(status, 502);
    assert!(!error.to_string().contains("CUDA"), "{error}");

    // The same in the middle of a stream.
    let broken = || -> Arc<ScriptedEngine> {
        Arc::new(ScriptedEngine::new(|_| {
            let reason = WORDS.to_owned();
            vec![Ok(Delta::text("It")), Err(EngineError::Interrupted { engine: "vllm".to_owned(), reason })]
        }))
    };
    let streaming = asking(json!({ "stream": true }));
    let here = TestServer::start(broken() as Arc<dyn Engine>).await;
    assert!(here.chat(&streaming).await.text().await.unwrap().contains(WORDS));
    let outside = reached_from_network(&broken(), ServerConfig::default()).await;
    let text = outside.chat(&streaming).await.text().await.unwrap();
    assert!(text.contains("engine_answer_interrupted") && text.contains("the engine failed"), "{text}");
    assert!(!text.contains("CUDA") && !text.contains("[DONE]"), "{text}");
    // Messages about the request itself are for its sender.
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::json(422, json!({ "error": { "message": "top_p is odd" } }).to_string()),
    })
    .await;
    let system = Arc::new(AskService::new(parts(engine_at(&fake, Style::VLLM))));
    let outside = parts_reached_from_network(system, ServerConfig::default()).await;
    assert!(outside.chat(&asking(json!({}))).await.text().await.unwrap().contains("top_p is odd"));
}
