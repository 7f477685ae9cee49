//! `GET /metrics`: what is counted, who may read it, and whether the official parser reads it.

use std::process::Stdio;
use std::sync::Arc;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::client::{RawConnection, asking, chunk};
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

async fn page(server: &TestServer) -> String {
    let answer = server.client.get(server.url("/metrics")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    answer.text().await.unwrap()
}

fn assert_has(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|found| found == *line), "no '{line}' in:\n{page}");
    }
}

/// The same, repeated for a while: the end of an answer is counted when its last byte is sent, and another thread notices a disconnect
/// later.
async fn assert_has_soon(server: &TestServer, wanted: &[&str]) {
    let has_all = async {
        loop {
            let text = page(server).await;
            if wanted.iter().all(|line| text.lines().any(|found| found == *line)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(WAIT_LIMIT, has_all).await.is_err() {
        assert_has(&page(server).await, wanted);
    }
}

#[tokio::test]
async fn requests_tokens_and_times_are_counted_once_each() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"]))).await;
    for fields in [json!({}), json!({ "stream": true })] {
        server.chat(&asking(fields)).await.bytes().await.unwrap();
    }
    assert_eq!(server.chat(&json!({})).await.status(), 400);
    assert_eq!(server.chat(&asking(json!({ "model": "nobody" }))).await.status(), 404);
    // Probes are not counted.
    for path in ["/nothing", "/nothing/else", "/v1/models/m", "/health/live", "/health/ready"] {
        server.client.get(server.url(path)).send().await.unwrap();
    }
    assert_has_soon(
        &server,
        &[
            r#"hob_http_requests_total{route="/v1/chat/completions",status="200"} 2"#,
            r#"hob_http_requests_total{route="/v1/chat/completions",status="400"} 1"#,
            r#"hob_http_requests_total{route="/v1/chat/completions",status="404"} 1"#,
            r#"hob_http_requests_total{route="/v1/models/:id",status="200"} 1"#,
            r#"hob_http_requests_total{route="other",status="404"} 2"#,
            r#"hob_http_request_duration_seconds_count{route="/v1/chat/completions"} 4"#,
            r#"hob_inferences_total{engine="scripted",model="m",ending="complete"} 2"#,
            r#"hob_inferences_total{engine="scripted",model="m",ending="failed"} 0"#,
            r#"hob_inferences_total{engine="scripted",model="m",ending="cancelled"} 0"#,
            r#"hob_prompt_tokens_total{engine="scripted",model="m"} 6"#,
            r#"hob_completion_tokens_total{engine="scripted",model="m"} 4"#,
            r#"hob_inference_duration_seconds_count{engine="scripted",model="m"} 2"#,
            // Only for streams.
            r#"hob_first_token_seconds_count{engine="scripted",model="m"} 1"#,
            r#"hob_engine_up{engine="scripted"} 1"#,
            "hob_requests_in_flight 0",
            "hob_telemetry_dropped_total 0",
            "hob_spans_dropped_total 0",
        ],
    )
    .await;
    let page = page(&server).await;
    assert!(!page.contains("/health"), "{page}");
    assert!(
        !page.contains("nobody") && !page.contains("/nothing"),
        "unknown names create no metrics: {page}"
    );
}

/// The page as the official parser understands it.
async fn parsed(page: &str) -> Value {
    let python = std::env::var("HOB_TEST_PYTHON").unwrap_or_else(|_| {
        panic!("$HOB_TEST_PYTHON is not set. This test needs a parser: run it with './dev test', which installs one.")
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/prometheus_page.py");
    let mut command = Command::new(python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "the parser does not understand:\n{page}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_official_parser_reads_every_metric_with_any_model_name() {
    const NAME: &str = "a \"quoted\" {name}, with\\all\nof it = 1";
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&[NAME]);
    let server = TestServer::start(Arc::new(engine)).await;
    let answer = server.chat(&asking(json!({ "model": NAME, "stream": true }))).await;
    assert_eq!(answer.status(), 200);
    answer.bytes().await.unwrap();

    let families = parsed(&page(&server).await).await;
    let kinds: Vec<(&str, &str)> = families
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, family)| (name.as_str(), family["type"].as_str().unwrap()))
        .collect();
    // The parser removes the suffix of a counter's name.
    let mut expected = vec![
        ("hob_http_requests", "counter"),
        ("hob_http_request_duration_seconds", "histogram"),
        ("hob_requests_in_flight", "gauge"),
        ("hob_requests_queued", "gauge"),
        ("hob_key_refusals", "counter"),
        ("hob_inferences", "counter"),
        ("hob_prompt_tokens", "counter"),
        ("hob_completion_tokens", "counter"),
        ("hob_cached_tokens", "counter"),
        ("hob_inference_duration_seconds", "histogram"),
        ("hob_first_token_seconds", "histogram"),
        ("hob_engine_up", "gauge"),
        ("hob_dependency_up", "gauge"),
        ("hob_telemetry_dropped", "counter"),
        ("hob_spans_dropped", "counter"),
        ("hob_build_info", "gauge"),
        ("process_start_time_seconds", "gauge"),
    ];
    if cfg!(target_os = "linux") {
        expected.push(("process_resident_memory_bytes", "gauge"));
    }
    assert_eq!(kinds, expected);
    assert_eq!(
        families["hob_prompt_tokens"]["samples"][0]["labels"],
        json!({ "engine": "scripted", "model": NAME })
    );

    let times = families["hob_first_token_seconds"]["samples"].as_array().unwrap();
    let buckets: Vec<(f64, f64)> = times
        .iter()
        .filter(|sample| sample["name"] == "hob_first_token_seconds_bucket")
        .map(|sample| {
            let bound = sample["labels"]["le"].as_str().unwrap().parse().unwrap();
            (bound, sample["value"].as_str().unwrap().parse().unwrap())
        })
        .collect();
    assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{buckets:?}");
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 1.0)));
}

#[tokio::test]
async fn each_turn_of_an_agent_is_counted() {
    let server = TestServer::start_system(parts(calculating()), loopback_config()).await;
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
    assert_has_soon(
        &server,
        &[
            r#"hob_inferences_total{engine="scripted",model="m",ending="complete"} 2"#,
            r#"hob_prompt_tokens_total{engine="scripted",model="m"} 30"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn requests_in_progress_and_disconnected_clients_are_counted() {
    let hold = Hold::new();
    let held = hold.clone();
    let fake = FakeServer::start(move |request| match request.path.as_str() {
        "/v1/models" => models(),
        _ => Reply::sse(chunk("{\"content\":\"Hel\"}")).then_held(&held, FINISH),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut caller = RawConnection::connect(&server).await;
    caller.send_chat(&asking(json!({ "stream": true }))).await;
    caller.until("Hel").await;
    assert_has(&page(&server).await, &["hob_requests_in_flight 1", "hob_requests_queued 0"]);

    drop(caller);
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.unwrap();
    assert_has_soon(
        &server,
        &[
            "hob_requests_in_flight 0",
            r#"hob_inferences_total{engine="vllm",model="m",ending="cancelled"} 1"#,
            r#"hob_http_request_duration_seconds_count{route="/v1/chat/completions"} 1"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_answer_is_counted() {
    let fake = FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => models(),
        _ => Reply::silence(),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut caller = RawConnection::connect(&server).await;
    caller.send_chat(&asking(json!({}))).await;
    let asked = async {
        while !fake.requests().iter().any(|request| request.method == "POST") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, asked).await.unwrap();
    drop(caller);
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.unwrap();
    assert_has_soon(
        &server,
        &[
            r#"hob_http_requests_total{route="/v1/chat/completions",status="499"} 1"#,
            // No answer has shown that this model exists.
            r#"hob_inferences_total{engine="vllm",model="other",ending="cancelled"} 1"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn a_panic_is_answered_and_counted_as_a_server_error() {
    let engine = ScriptedEngine::new(|_| panic!("a fault of ours"));
    let server = TestServer::start(Arc::new(engine)).await;
    for fields in [json!({}), json!({ "stream": true })] {
        let answer = server.chat(&asking(fields)).await;
        assert_eq!(answer.status(), 500);
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["code"], "panicked");
    }
    assert_has_soon(
        &server,
        &[
            r#"hob_http_requests_total{route="/v1/chat/completions",status="500"} 2"#,
            "hob_requests_in_flight 0",
        ],
    )
    .await;
}

#[tokio::test]
async fn refused_callers_are_counted_and_get_no_metrics() {
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..loopback_config() };
    let server = TestServer::start_system(parts(calculating()), config).await;
    let get = || server.client.get(server.url("/metrics"));
    assert_eq!(get().send().await.unwrap().status(), 401);
    let page = get().bearer_auth("s3cret").send().await.unwrap().text().await.unwrap();
    assert_has(&page, &[r#"hob_http_requests_total{route="/metrics",status="401"} 1"#]);
}

#[tokio::test]
async fn strangers_get_no_metrics() {
    let server = reached_from_network(&calculating(), ServerConfig::default()).await;
    assert_eq!(server.client.get(server.url("/metrics")).send().await.unwrap().status(), 403);
}
