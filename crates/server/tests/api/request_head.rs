//! Request heads that a proxy and this server could read differently.

use hob_config::ServerConfig;

use crate::client::RawConnection;
use crate::fixtures::scripted;
use crate::support::TestServer;

/// The first line of the server's answer to these bytes.
async fn first_line(server: &TestServer, bytes: &str) -> String {
    let mut raw = RawConnection::connect(server).await;
    raw.send_what_is_taken(bytes.as_bytes()).await;
    raw.half_close().await;
    raw.rest().await.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_request_needs_exactly_one_valid_host() {
    let server = scripted(ServerConfig::default()).await;
    for (head, status) in [
        ("GET /health HTTP/1.1\r\nhost: localhost\r\n", "200"),
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nHost: evil.example\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: evil.example\r\nhost: localhost\r\n", "400"),
        ("GET /health HTTP/1.1\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost:\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: localhost evil.example\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: user@localhost\r\n", "400"),
        ("GET /health HTTP/1.0\r\nhost: localhost\r\nhost: localhost\r\n", "400"),
        ("GET /health HTTP/1.0\r\n", "200"),
        // The address in the request line has priority.
        ("GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\n", "403"),
        ("GET http://localhost/health HTTP/1.1\r\nhost: evil.example\r\n", "200"),
        ("GET http://localhost/health HTTP/1.1\r\n", "400"),
        ("GET http://evil.example/health HTTP/1.0\r\n", "403"),
        ("CONNECT evil.example:80 HTTP/1.1\r\nhost: localhost\r\n", "403"),
    ] {
        let line = first_line(&server, &format!("{head}connection: close\r\n\r\n")).await;
        assert_eq!(line.split(' ').nth(1), Some(status), "{head:?} → {line:?}");
    }
}

#[tokio::test]
async fn ambiguous_content_lengths_are_refused() {
    let server = scripted(ServerConfig::default()).await;
    let chat = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    for lengths in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 6\r\n",
        "content-length: +5\r\n",
        "content-length: 0x5\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding : chunked\r\n",
        "transfer-encoding:\r\n chunked\r\n",
    ] {
        let smuggled = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let mut raw = RawConnection::connect(&server).await;
        raw.send_what_is_taken(format!("{chat}{lengths}\r\n{smuggled}").as_bytes()).await;
        raw.half_close().await;
        let answers = raw.rest().await;
        assert!(answers.starts_with("HTTP/1.1 400 ") || answers.is_empty(), "{lengths:?} → {answers:?}");
        assert!(!answers.contains("/smuggled"), "{lengths:?} → {answers:?}");
    }
    assert_eq!(
        first_line(&server, "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await,
        "HTTP/1.1 200 OK"
    );
}
