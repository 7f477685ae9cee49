use axum::response::IntoResponse;

use super::*;

fn gate(config: ServerConfig) -> Gate {
    Gate::new(&config)
}

/// The status a request is turned away with, or 200.
fn status(gate: &Gate, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match gate.check(&request.body(()).unwrap()) {
        Ok(()) => 200,
        Err(error) => error.into_response().status().as_u16(),
    }
}

#[test]
fn an_ip_and_localhost_are_always_ours() {
    let gate = gate(ServerConfig::default());
    for host in
        ["127.0.0.1:8000", "localhost", "LOCALHOST:8000", "[::1]:8000", "192.168.1.7", "app.localhost:1"]
    {
        assert_eq!(status(&gate, "GET", "/v1/models", &[("host", host)]), 200, "{host}");
    }
    assert_eq!(status(&gate, "GET", "/v1/models", &[]), 200, "HTTP/1.0 without a Host");
}

#[test]
fn a_rebound_name_is_turned_away() {
    let gate =
        gate(ServerConfig { allowed_hosts: vec!["hob.example.org".into()], ..ServerConfig::default() });
    for host in [
        "evil.example",
        "localhost.evil.example:8000",
        "127.0.0.1.evil.example",
        "",
        "a b",
        "evil.example\u{e9}",
    ] {
        assert_eq!(status(&gate, "GET", "/health", &[("host", host)]), 403, "{host:?}");
    }
    assert_eq!(status(&gate, "GET", "/health", &[("host", "hob.example.org:443")]), 200);
    assert_eq!(status(&gate, "GET", "/health", &[("host", "HOB.example.org.")]), 200);
}

#[test]
fn a_foreign_page_is_turned_away_even_when_it_calls_us_by_ip() {
    let invited =
        ServerConfig { cors_origins: vec!["https://app.example.org".into()], ..ServerConfig::default() };
    let gate = gate(invited);
    let asked =
        |origin: &str| status(&gate, "POST", "/v1/x", &[("host", "127.0.0.1:8000"), ("origin", origin)]);
    assert_eq!(asked("https://evil.example"), 403);
    assert_eq!(asked("null"), 403);
    assert_eq!(asked("https://app.example.org.evil.example"), 403);
    assert_eq!(asked("https://app.example.org"), 200);
    assert_eq!(asked("http://localhost:5173"), 200);
    assert_eq!(asked("http://127.0.0.1:8000"), 200);
}

#[test]
fn a_key_once_set_is_needed_everywhere_but_for_health() {
    let gate = gate(ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() });
    let with =
        |value: &str| status(&gate, "GET", "/v1/models", &[("host", "localhost"), ("authorization", value)]);
    assert_eq!(with("Bearer s3cret"), 200);
    assert_eq!(with("bearer s3cret "), 200);
    for wrong in ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"] {
        assert_eq!(with(wrong), 401, "{wrong:?}");
    }
    assert_eq!(status(&gate, "GET", "/v1/models", &[("host", "localhost")]), 401);
    assert_eq!(status(&gate, "GET", "/health", &[("host", "localhost")]), 200);
    assert_eq!(
        status(&gate, "OPTIONS", "/v1/models", &[("host", "localhost"), ("origin", "http://localhost:5173")]),
        200
    );
}
