use std::net::Ipv4Addr;

use axum::http::Version;
use axum::response::IntoResponse;

use super::*;

fn guard(config: ServerConfig) -> Guard {
    Guard::new(&config, vec!["ada.local".into(), "ada".into()])
}

/// The status a request is turned away with, or 200.
fn status(guard: &Guard, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let is_named = path.starts_with("http:") || headers.iter().any(|(name, _)| *name == "host");
    // Only HTTP/1.0 may leave the name out.
    let version = if is_named { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut request = Request::builder().method(method).uri(path).version(version);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match guard.check(&request.body(()).unwrap(), Ipv4Addr::LOCALHOST.into(), CallerSources::default()) {
        Ok(_) => 200,
        Err(error) => error.into_response().status().as_u16(),
    }
}

#[test]
fn an_ip_and_localhost_are_always_ours() {
    let guard = guard(ServerConfig::default());
    for host in
        ["127.0.0.1:8000", "localhost", "LOCALHOST:8000", "[::1]:8000", "192.168.1.7", "app.localhost:1"]
    {
        assert_eq!(status(&guard, "GET", "/v1/models", &[("host", host)]), 200, "{host}");
    }
    assert_eq!(status(&guard, "GET", "/v1/models", &[]), 200, "HTTP/1.0 without a Host");
}

#[test]
fn a_rebound_name_is_refused() {
    let guard =
        guard(ServerConfig { allowed_hosts: vec!["hob.example.org".into()], ..ServerConfig::default() });
    for host in ["evil.example", "localhost.evil.example:8000", "127.0.0.1.evil.example"] {
        assert_eq!(status(&guard, "GET", "/health", &[("host", host)]), 403, "{host:?}");
    }
    assert_eq!(status(&guard, "GET", "/health", &[("host", "hob.example.org:443")]), 200);
    assert_eq!(status(&guard, "GET", "/health", &[("host", "HOB.example.org.")]), 200);
}

#[test]
fn the_names_of_this_machine_are_accepted_and_no_others_of_its_network() {
    let guard = guard(ServerConfig::default());
    let asked = |host: &str| status(&guard, "GET", "/v1/models", &[("host", host)]);
    for host in ["ada", "ada:8000", "ADA.local:8000", "ada.local", "Ada.Local.:8000"] {
        assert_eq!(asked(host), 200, "{host}");
    }
    for host in [
        "local",
        "bob.local",
        "ada.local.evil.example",
        "ada.evil.example",
        "x.ada.local",
        "ada.localdomain",
        "xada.local",
        "ada..local",
        "ada-.local",
    ] {
        assert_eq!(asked(host), 403, "{host}");
    }
}

#[test]
fn a_name_of_this_machine_gives_no_rights_of_the_owner() {
    let guard = guard(ServerConfig::default());
    let checked = |host: &str, origin: &str| {
        let request = Request::builder().uri("/v1/x").header("host", host).header("origin", origin);
        let sources = CallerSources::default();
        guard.check(&request.body(()).unwrap(), Ipv4Addr::LOCALHOST.into(), sources).map(|found| found.origin)
    };
    // The page that was loaded under that name works.
    assert_eq!(checked("ada.local:8000", "http://ada.local:8000").unwrap(), RequestOrigin::Forwarded);
    // Another machine can claim the name and show a page, which must not call this one.
    for host in ["localhost:8000", "127.0.0.1:8000", "ada.local:8000"] {
        assert!(checked(host, "http://ada.local:9000").is_err(), "{host}");
    }
}

#[test]
fn a_name_that_is_missing_doubled_or_malformed_is_no_request() {
    let guard = guard(ServerConfig::default());
    for host in [
        "",
        "a b",
        "evil.example\u{e9}",
        "localhost:80:80",
        "localhost:99999",
        "localhost:x",
        "localhost/",
        "user@localhost",
        "[::1",
        "::1",
        "[localhost]",
        "localhost\\@evil.example",
        "<script>",
        "localhost#",
    ] {
        assert_eq!(status(&guard, "GET", "/health", &[("host", host)]), 400, "{host:?}");
    }
    for hosts in [["localhost", "localhost"], ["localhost", "evil.example"], ["evil.example", "localhost"]] {
        let twice = hosts.map(|host| ("host", host));
        assert_eq!(status(&guard, "GET", "/health", &twice), 400, "{hosts:?}");
        assert_eq!(status(&guard, "GET", "http://localhost/health", &twice), 400, "{hosts:?}");
    }
    assert_eq!(status(&guard, "GET", "http://localhost/health", &[]), 400, "its own address is no excuse");
    assert_eq!(status(&guard, "GET", "/health", &[("host", "localhost:")]), 200);
}

#[test]
fn the_address_in_the_first_line_goes_before_the_header() {
    let guard = guard(ServerConfig::default());
    let asked = |uri: &str, host: &str| status(&guard, "GET", uri, &[("host", host)]);
    assert_eq!(asked("http://evil.example/health", "localhost"), 403);
    assert_eq!(asked("http://localhost:8000/health", "evil.example"), 200);
    assert_eq!(asked("http://user@localhost/health", "localhost"), 400);
}

#[test]
fn what_was_forwarded_and_what_calls_by_another_name_is_not_from_here() {
    let allowed_hosts = vec!["hob.example.org".to_owned()];
    let guard = guard(ServerConfig { allowed_hosts, ..ServerConfig::default() });
    let origin_of = |headers: &[(&str, &str)]| {
        let request = Request::builder().uri("/v1/x");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        guard
            .check(&request.body(()).unwrap(), Ipv4Addr::LOCALHOST.into(), CallerSources::default())
            .unwrap()
            .origin
    };
    for host in [
        "localhost",
        "LOCALHOST:8000",
        "app.localhost",
        "127.0.0.1:8000",
        "127.9.9.9",
        "[::1]:8000",
        "0.0.0.0:8000",
    ] {
        assert_eq!(origin_of(&[("host", host)]), RequestOrigin::Direct, "{host}");
    }
    for host in ["hob.example.org", "192.168.1.7:8000", "[fd00::7]", "203.0.113.5"] {
        assert_eq!(origin_of(&[("host", host)]), RequestOrigin::Forwarded, "{host}");
    }
    let old = Request::builder().version(Version::HTTP_10).uri("/v1/x").header("host", "127.0.0.1:8000");
    let old_origin = guard
        .check(&old.body(()).unwrap(), Ipv4Addr::LOCALHOST.into(), CallerSources::default())
        .unwrap()
        .origin;
    assert_eq!(old_origin, RequestOrigin::Forwarded, "as a proxy asks that is not configured");
    for header in [
        "x-client-ip",
        "x-envoy-external-address",
        "forwarded",
        "Via",
        "x-real-ip",
        "X-Forwarded-For",
        "x-forwarded-proto",
        "x-forwarded-host",
        "CF-Connecting-IP",
        "cf-ray",
    ] {
        assert_eq!(origin_of(&[("host", "localhost"), (header, "1")]), RequestOrigin::Forwarded, "{header}");
    }
    for header in ["x-request-id", "viable", "cfg", "x-forward"] {
        assert_eq!(origin_of(&[("host", "localhost"), (header, "1")]), RequestOrigin::Direct, "{header}");
    }
}

#[test]
fn a_foreign_page_is_refused_even_when_it_names_an_ip() {
    let invited =
        ServerConfig { cors_origins: vec!["https://app.example.org".into()], ..ServerConfig::default() };
    let guard = guard(invited);
    let asked =
        |origin: &str| status(&guard, "POST", "/v1/x", &[("host", "127.0.0.1:8000"), ("origin", origin)]);
    assert_eq!(asked("https://evil.example"), 403);
    assert_eq!(asked("null"), 403);
    assert_eq!(asked("https://app.example.org.evil.example"), 403);
    assert_eq!(asked("https://app.example.org"), 200);
    assert_eq!(asked("http://localhost:5173"), 200);
    assert_eq!(asked("http://127.0.0.1:8000"), 200);
}

#[test]
fn a_page_at_an_address_of_digits_is_ours_only_where_it_calls_us_by_that_address() {
    let guard = guard(ServerConfig { allowed_hosts: vec!["192.168.1.9".into()], ..ServerConfig::default() });
    let asked =
        |host: &str, origin: &str| status(&guard, "POST", "/v1/x", &[("host", host), ("origin", origin)]);
    for (host, origin) in [
        ("192.168.1.7:8000", "http://192.168.1.7:8000"),
        ("192.168.1.7", "https://192.168.1.7"),
        ("[fd00::7]:8000", "http://[fd00::7]:8000"),
        ("127.0.0.1:8000", "http://127.8.8.8:3000"),
        ("127.0.0.1:8000", "http://[::1]:3000"),
        ("127.0.0.1:8000", "http://[::ffff:127.0.0.1]"),
        ("127.0.0.1:8000", "http://192.168.1.9:3000"),
    ] {
        assert_eq!(asked(host, origin), 200, "{origin} at {host}");
    }
    for (host, origin) in [
        ("127.0.0.1:8000", "http://203.0.113.5"),
        ("192.168.1.7:8000", "http://203.0.113.5"),
        ("192.168.1.7:8000", "http://192.168.1.7:9000"),
        ("192.168.1.7:8000", "http://192.168.1.7"),
        ("127.0.0.1:8000", "http://[fd00::7]"),
        ("127.0.0.1:8000", "127.0.0.1:8000"),
    ] {
        assert_eq!(asked(host, origin), 403, "{origin} at {host}");
    }
    assert_eq!(status(&guard, "POST", "/v1/x", &[("origin", "http://203.0.113.5")]), 403, "without a Host");
}

#[test]
fn with_a_wildcard_unlisted_pages_are_distinguished() {
    let cors_origins = vec!["https://app.example.org".to_owned(), "*".to_owned()];
    let guard = guard(ServerConfig { cors_origins, ..ServerConfig::default() });
    let origin_of = |origin: &str| {
        let request = Request::builder().uri("/v1/x").header("host", "localhost").header("origin", origin);
        guard
            .check(&request.body(()).unwrap(), Ipv4Addr::LOCALHOST.into(), CallerSources::default())
            .unwrap()
            .origin
    };
    for origin in ["https://app.example.org", "http://localhost:5173", "http://127.0.0.1"] {
        assert_eq!(origin_of(origin), RequestOrigin::Direct, "{origin}");
    }
    for origin in ["https://evil.example", "null", "http://203.0.113.5"] {
        assert_eq!(origin_of(origin), RequestOrigin::UnlistedPage, "{origin}");
    }
}

#[test]
fn a_key_once_set_is_needed_everywhere_but_for_health() {
    let guard = guard(ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() });
    let with =
        |value: &str| status(&guard, "GET", "/v1/models", &[("host", "localhost"), ("authorization", value)]);
    assert_eq!(with("Bearer s3cret"), 200);
    assert_eq!(with("bearer s3cret "), 200);
    for wrong in ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"] {
        assert_eq!(with(wrong), 401, "{wrong:?}");
    }
    assert_eq!(status(&guard, "GET", "/v1/models", &[("host", "localhost")]), 401);
    for path in ["/health", "/health/live", "/health/ready"] {
        assert_eq!(status(&guard, "GET", path, &[("host", "localhost")]), 200);
    }
    assert_eq!(
        status(
            &guard,
            "OPTIONS",
            "/v1/models",
            &[("host", "localhost"), ("origin", "http://localhost:5173")]
        ),
        200
    );
}

#[test]
fn anthropics_header_counts_as_the_key() {
    let guard = guard(ServerConfig { api_key: Some("s3cret".into()), ..ServerConfig::default() });
    let with = |key| status(&guard, "POST", "/v1/messages", &[("host", "localhost"), ("x-api-key", key)]);
    assert_eq!((with("s3cret"), with("s3cre"), with("")), (200, 401, 401));
}
