//! `GET /health` and the probes of orchestrators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_app::AskService;
use hob_config::ServerConfig;
use hob_core::ReadinessCheck;
use hob_server::ServerParts;
use hob_testkit::ScriptedEngine;

use crate::client::RawConnection;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

/// The status and the body of a probe.
async fn probe(server: &TestServer, path: &str) -> (u16, String) {
    let response = server.client.get(server.url(path)).send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "no-store");
    (response.status().as_u16(), response.text().await.unwrap())
}

fn ok() -> (u16, String) {
    (200, r#"{"status":"ok"}"#.to_owned())
}

/// What the owner sees.
fn not_ready(reason: &str) -> (u16, String) {
    (503, format!(r#"{{"status":"not ready","reason":"{reason}"}}"#))
}

/// A part that a test switches off.
struct Part(AtomicBool);

impl ReadinessCheck for Part {
    fn name(&self) -> &'static str {
        "database"
    }

    fn problem(&self) -> Option<String> {
        (!self.0.load(Ordering::Relaxed)).then(|| "the database is away".to_owned())
    }
}

#[tokio::test]
async fn probes_answer_without_a_key_and_do_not_depend_on_the_engine() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    engine.set_healthy(false);
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..loopback_config() };
    let server = TestServer::start_with(engine, config).await;
    assert_eq!((probe(&server, "/health/live").await, probe(&server, "/health/ready").await), (ok(), ok()));
    assert_eq!(server.client.post(server.url("/health/ready")).send().await.unwrap().status(), 405);
    assert_eq!(server.client.get(server.url("/health/other")).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_part_that_does_not_work_makes_the_server_not_ready_until_it_works_again() {
    let part = Arc::new(Part(AtomicBool::new(false)));
    let system = Arc::new(AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"])))));
    let parts = ServerParts {
        readiness: vec![Arc::clone(&part) as Arc<dyn ReadinessCheck>],
        ..ServerParts::from(system)
    };
    let server = TestServer::start_parts(parts, loopback_config()).await;
    assert_eq!(probe(&server, "/health/ready").await, not_ready("the database is away"));
    let forwarded = server.client.get(server.url("/health/ready")).header("x-forwarded-for", "8.8.8.8");
    assert_eq!(forwarded.send().await.unwrap().text().await.unwrap(), r#"{"status":"not ready"}"#);
    assert_eq!(probe(&server, "/health/live").await, ok());
    let is_up = async |up: u8| {
        let (_, page) = probe(&server, "/metrics").await;
        let line = format!("hob_dependency_up{{dependency=\"database\"}} {up}");
        assert!(page.lines().any(|found| found == line), "{page}");
    };
    is_up(0).await;
    part.0.store(true, Ordering::Relaxed);
    assert_eq!(probe(&server, "/health/ready").await, ok());
    is_up(1).await;
}

#[tokio::test]
async fn a_server_that_drains_is_not_ready_and_still_accepts_requests() {
    let drain_seconds = 10 * WAIT_LIMIT;
    let config = ServerConfig { drain_seconds, shutdown_grace: Duration::ZERO, ..loopback_config() };
    let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    assert_eq!(probe(&server, "/health/ready").await, ok());
    server.shutdown.cancel();
    let drained =
        async { while probe(&server, "/health/ready").await != not_ready("the server is stopping") {} };
    tokio::time::timeout(WAIT_LIMIT, drained).await.expect("it is not ready");
    assert_eq!(probe(&server, "/health/live").await, ok());
    let mut fresh = RawConnection::connect(&server).await;
    fresh.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    fresh.until(r#"{"status":"ok"}"#).await;
}

#[tokio::test]
async fn health_answers_with_exact_bodies() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = TestServer::start(Arc::clone(&engine) as _).await;
    for (healthy, status, body) in
        [(true, 200, r#"{"status":"ok"}"#), (false, 503, r#"{"detail":"Engine unhealthy"}"#)]
    {
        engine.set_healthy(healthy);
        let response = server.client.get(server.url("/health")).send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.text().await.unwrap(), body);
    }
}
