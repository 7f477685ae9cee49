//! `GET /v1/savings` as clients see it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_app::hob_database;
use hob_app::startup::telemetry::telemetry_options;
use hob_app::{AskService, AskServiceParts};
use hob_config::{Config, ServerConfig};
use hob_core::{Engine, FinishReason, RequestSource, Usage};
use hob_engines::Style;
use hob_server::ServerParts;
use hob_telemetry::TelemetryService;
use hob_telemetry::{Energy, Inference, InferenceEnd};
use hob_testkit::{FakeServer, Hold, Outside, Reply, ScriptedEngine};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::openapi::{assert_fits, document_of};
use crate::client::{asking, chunk};
use crate::fixtures::parts;
use crate::support::{FINISH, TestServer, engine_at, models};

/// A server that records calls in its own home directory, or not at all.
async fn recording(
    engine: Arc<dyn Engine>,
    telemetry: bool,
    config: ServerConfig,
) -> (TempDir, TelemetryService, TestServer) {
    let home = tempfile::tempdir().unwrap();
    let mut settings = Config::default();
    settings.telemetry.enabled = telemetry;
    let record = TelemetryService::open(&telemetry_options(&settings), hob_database(home.path()));
    let config = ServerConfig { host: "127.0.0.1".into(), port: 0, ..config };
    let server = TestServer::start_parts(recorded_in(&record, engine), config).await;
    (home, record, server)
}

/// A service without agents that records every call.
pub fn recorded_in(record: &TelemetryService, engine: Arc<dyn Engine>) -> ServerParts {
    let system =
        AskService::new(AskServiceParts { agent: None, log: Arc::new(record.clone()), ..parts(engine) });
    ServerParts { record: record.clone(), ..ServerParts::from(Arc::new(system)) }
}

async fn savings(server: &TestServer, query: &str) -> Value {
    let answer = server.client.get(server.url(&format!("/v1/savings{query}"))).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["cache-control"]),
        (200, &"no-store".parse().unwrap())
    );
    answer.json().await.unwrap()
}

#[tokio::test]
async fn answers_are_counted_and_priced() {
    let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]));
    let (_home, record, server) = recording(engine, true, ServerConfig::default()).await;
    for fields in [json!({}), json!({ "stream": true })] {
        let answer = server.chat(&asking(fields)).await;
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
    }
    record.close().await;

    let body = savings(&server, "?timezone=Europe/Berlin").await;
    assert_fits(&document_of(&server).await, "Savings", &body);
    assert_eq!(
        [
            &body["total_calls"],
            &body["total_prompt_tokens"],
            &body["total_completion_tokens"],
            &body["total_tokens"]
        ],
        [&json!(2), &json!(6), &json!(4), &json!(10)]
    );
    // 6 × $1.75 and 4 × $14 per million.
    assert_eq!(body["per_provider"][0]["total_cost"], json!(0.0000665));
    assert_eq!((&body["per_model"][0]["model"], &body["per_model"][0]["calls"]), (&json!("m"), &json!(2)));
    assert_eq!(body["recent"].as_array().unwrap().len(), 2);
    assert_eq!(body["live"], json!({ "in_flight": 0, "queued": 0 }));
    assert_eq!(body["engine"], json!({ "key": "scripted", "healthy": true }));
    assert_eq!(body["over_time"]["timezone"], "Europe/Berlin");
    assert_eq!(body["over_time"]["days"][29]["calls"], 2);
    assert_eq!(body.get("message"), None);
    assert!(body["first_token"]["p50"].as_f64() > Some(0.0), "{body}");
}

#[tokio::test]
async fn a_stranger_gets_the_totals_but_not_the_calls() {
    let network = Outside::find();
    let home = tempfile::tempdir().unwrap();
    let record = TelemetryService::open(&telemetry_options(&Config::default()), hob_database(home.path()));
    record.store().unwrap().record_batch(&[call(None, None)], record.prices()).unwrap();
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let mut server = TestServer::start_parts(recorded_in(&record, engine), config).await;
    server.address.set_ip(Ipv4Addr::LOCALHOST.into());
    assert_eq!(savings(&server, "").await["recent"].as_array().unwrap().len(), 1);
    server.address.set_ip(network.address());
    let answer = savings(&server, "").await;
    assert_eq!((&answer["total_calls"], answer.get("recent")), (&json!(1), None));
    assert_fits(&document_of(&server).await, "Savings", &answer);
}

#[tokio::test]
async fn a_finished_call_is_in_the_next_report() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_home, _record, server) = recording(engine, true, ServerConfig::default()).await;
    for calls in 1..=5 {
        assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
        assert_eq!(savings(&server, "").await["total_calls"], json!(calls));
    }
}

#[tokio::test]
async fn energy_is_null_unless_it_was_measured() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_home, record, server) = recording(engine, true, ServerConfig::default()).await;
    let document = document_of(&server).await;
    let before = savings(&server, "").await;
    assert_fits(&document, "Savings", &before);
    assert_eq!(before["energy"], Value::Null);

    // As if measured on another machine: this one has no meter.
    let failed = InferenceEnd::Failed("out of memory".to_owned());
    let calls = [call(Some(2_500_000), None), call(None, None), call(Some(1_000_000), Some(failed))];
    record.store().unwrap().record_batch(&calls, record.prices()).unwrap();
    let after = savings(&server, "").await;
    assert_fits(&document, "Savings", &after);
    assert_eq!(after["energy"], json!({ "joules": 3.5, "calls": 2, "measured": true, "meter": null }));
}

/// A call with this energy in microjoules that succeeded or failed.
pub fn call(microjoules: Option<u64>, ending: Option<InferenceEnd>) -> Inference {
    Inference {
        started: SystemTime::now(),
        run: "run".into(),
        source: RequestSource::Server,
        engine: "ollama".into(),
        model: "qwen3:8b".into(),
        agent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        streamed: false,
        usage: Usage {
            prompt_tokens: 10,
            completion_tokens: 5,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        estimated: false,
        latency: Duration::from_millis(20),
        first_token: None,
        energy: microjoules.map(Energy::from_microjoules),
        ending: ending.unwrap_or(InferenceEnd::Complete(FinishReason::Stop)),
    }
}

#[tokio::test]
async fn without_telemetry_the_figures_are_zero_and_the_reason_is_given() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_home, _record, server) = recording(engine, false, ServerConfig::default()).await;
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
    let body = savings(&server, "").await;
    assert_fits(&document_of(&server).await, "Savings", &body);
    assert_eq!((&body["total_calls"], &body["since"]), (&json!(0), &Value::Null));
    assert_eq!(body["per_provider"].as_array().unwrap().len(), 3);
    assert!(body["message"].as_str().unwrap().contains("[telemetry] enabled = true"), "{body}");
}

#[tokio::test]
async fn a_request_in_progress_is_reported() {
    let hold = Hold::new();
    let held = hold.clone();
    let fake = FakeServer::start(move |request| match request.path.as_str() {
        "/v1/models" => models(),
        _ => Reply::sse(chunk("{\"content\":\"Hel\"}")).then_held(&held, FINISH),
    })
    .await;
    let engine = engine_at(&fake, Style::VLLM);
    let (_home, _record, server) = recording(engine, true, ServerConfig::default()).await;
    let answer = server.chat(&asking(json!({ "stream": true }))).await;
    assert_eq!(savings(&server, "").await["live"], json!({ "in_flight": 1, "queued": 0 }));
    hold.release();
    answer.bytes().await.unwrap();
    assert_eq!(savings(&server, "").await["live"], json!({ "in_flight": 0, "queued": 0 }));
}

#[tokio::test]
async fn an_unknown_time_zone_is_refused_by_name() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_home, _record, server) = recording(engine, true, ServerConfig::default()).await;
    for zone in ["Mars/Olympus", "..%2F..%2Fetc%2Fpasswd", "", &"x".repeat(5000)] {
        let url = server.url(&format!("/v1/savings?timezone={zone}"));
        let answer = server.client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{zone}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["param"], "timezone");
        assert!(body["detail"].as_str().unwrap().len() < 200, "{body}");
    }
}

#[tokio::test]
async fn with_a_key_set_the_page_is_public_but_the_figures_are_not() {
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_home, _record, server) = recording(engine, true, config).await;
    let get = |path: &str| server.client.get(server.url(path));
    assert_eq!(get("/dashboard").send().await.unwrap().status(), 200);
    assert_eq!(get("/v1/savings").send().await.unwrap().status(), 401);
    assert_eq!(get("/v1/savings").bearer_auth("s3cret").send().await.unwrap().status(), 200);
}
