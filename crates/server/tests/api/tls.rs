//! HTTPS without a proxy: the certificate, its renewal, clients that speak plain HTTP, and handshakes that stall.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_app::AskService;
use hob_config::{ServerConfig, ServerTlsConfig};
use hob_engines::Style;
use hob_net::install_crypto;
use hob_server::Server;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine, TestCertificate};
use reqwest::Version;
use serde_json::json;
use tempfile::TempDir;

use crate::client::{RawConnection, asking, chunk};
use crate::fixtures::{loopback_config, scripted};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models, plain_parts};

/// The files of a certificate.
struct Files {
    _directory: TempDir,
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn of(certificate: &TestCertificate) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
        certificate.write(&cert, &key);
        Files { _directory: directory, cert, key }
    }

    fn config(&self) -> ServerConfig {
        let tls = ServerTlsConfig { cert: Some(self.cert.clone()), key: Some(self.key.clone()) };
        ServerConfig { tls, ..loopback_config() }
    }
}

/// A client that accepts this certificate and no other.
fn trusting(certificate: &TestCertificate) -> reqwest::Client {
    install_crypto();
    let root = reqwest::Certificate::from_pem(certificate.cert_pem.as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([root]).build().unwrap()
}

fn https(server: &TestServer, path: &str) -> String {
    format!("https://{}{path}", server.address)
}

#[tokio::test]
async fn https_answers_streams_and_knows_the_owner() {
    let certificate = TestCertificate::generate();
    let files = Files::of(&certificate);
    let server = scripted(files.config()).await;
    let client = trusting(&certificate);
    let health = client.get(https(&server, "/health")).send().await.unwrap();
    assert_eq!((health.status().as_u16(), health.version()), (200, Version::HTTP_11));
    // Loopback without a key is the owner, as over plain HTTP.
    assert_eq!(client.get(https(&server, "/metrics")).send().await.unwrap().status(), 200);
    let streamed =
        client.post(https(&server, "/v1/chat/completions")).json(&asking(json!({ "stream": true })));
    let text = streamed.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("\"content\":\"hi\"") && text.ends_with("data: [DONE]\n\n"), "{text}");

    let other = trusting(&TestCertificate::generate());
    assert!(other.get(https(&server, "/health")).send().await.unwrap_err().is_connect());
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_open_connections_continue() {
    let (first, second) = (TestCertificate::generate(), TestCertificate::generate());
    let files = Files::of(&first);
    let hold = Hold::new();
    let held = hold.clone();
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_held(&held, FINISH),
    })
    .await;
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), files.config()).await;
    let question = trusting(&first).post(https(&server, "/v1/chat/completions"));
    let stream = question.json(&asking(json!({ "stream": true }))).send().await.unwrap();

    second.write(&files.cert, &files.key);
    let client = trusting(&second);
    let renewed = async {
        // Each attempt that fails is a new connection.
        while client.get(https(&server, "/health/live")).send().await.is_err() {}
    };
    tokio::time::timeout(WAIT_LIMIT, renewed).await.expect("new connections get the new certificate");
    assert!(trusting(&first).get(https(&server, "/health/live")).send().await.is_err());

    hold.release();
    assert!(stream.text().await.unwrap().ends_with("data: [DONE]\n\n"), "the stream was not disturbed");
}

#[tokio::test]
async fn a_plain_request_to_the_https_port_gets_a_clear_answer() {
    let files = Files::of(&TestCertificate::generate());
    let server = scripted(files.config()).await;
    let body = "x".repeat(100_000);
    for request in [
        "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{body}"
        ),
    ] {
        let mut plain = RawConnection::connect(&server).await;
        plain.send(&request).await;
        plain.until("\"code\":\"https_required\"").await;
    }
    let answer = server.client.get(server.url("/health")).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert!(answer.headers()["server"].to_str().unwrap().starts_with("hob/"));
    let body: serde_json::Value = answer.json().await.unwrap();
    let message = "this server speaks HTTPS only. Use https:// in the address instead of http://.";
    assert_eq!(body["error"]["message"], message);

    // Neither TLS nor HTTP.
    let mut noise = RawConnection::connect(&server).await;
    noise.send("\u{1}\u{2}\u{3}").await;
    assert_eq!(noise.rest().await, "");
}

#[tokio::test]
async fn handshakes_that_stall_do_not_delay_others() {
    let certificate = TestCertificate::generate();
    let files = Files::of(&certificate);
    let server = scripted(files.config()).await;
    let mut stalled = Vec::new();
    for number in 0..32 {
        let mut connection = RawConnection::connect(&server).await;
        if number % 2 == 0 {
            // The beginning of a handshake.
            connection.send("\u{16}\u{3}\u{1}").await;
        }
        stalled.push(connection);
    }
    let health = trusting(&certificate).get(https(&server, "/health")).send().await.unwrap();
    assert_eq!(health.status(), 200);
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed() {
    let header_timeout = Duration::from_millis(100);
    let files = Files::of(&TestCertificate::generate());
    let server = scripted(ServerConfig { header_timeout, ..files.config() }).await;
    for beginning in ["", "\u{16}\u{3}\u{1}"] {
        let mut connection = RawConnection::connect(&server).await;
        connection.send(beginning).await;
        assert_eq!(connection.rest().await, "", "{beginning:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_stops_the_start_with_the_reason() {
    let files = Files::of(&TestCertificate::generate());
    let bind = async |tls: ServerTlsConfig| {
        let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
        let system = Arc::new(AskService::new(plain_parts(engine)));
        let config = ServerConfig { tls, ..loopback_config() };
        Server::bind(system, &config).await.err().expect("no server").to_string()
    };
    let cert_only = ServerTlsConfig { cert: Some(files.cert.clone()), key: None };
    assert_eq!(bind(cert_only).await, "[server.tls] needs both 'cert' and 'key', and 'key' is not set");
    let key_only = ServerTlsConfig { cert: None, key: Some(files.key.clone()) };
    assert_eq!(bind(key_only).await, "[server.tls] needs both 'cert' and 'key', and 'cert' is not set");
    let missing = ServerTlsConfig { cert: Some("/nowhere/cert.pem".into()), key: Some(files.key.clone()) };
    let error = bind(missing).await;
    let expected = "the certificate of [server.tls] cannot be used: cannot read /nowhere/cert.pem: ";
    assert!(error.starts_with(expected), "{error}");
}
