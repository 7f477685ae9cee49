//! The guard over real sockets. The table of host names is in its unit tests.

use hob_config::ServerConfig;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::scripted;
use crate::support::TestServer;

async fn get(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Response {
    asked(server, Method::GET, path, headers).await
}

async fn asked(server: &TestServer, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = server.client.request(method, server.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_refused_with_advice() {
    let server = scripted(ServerConfig::default()).await;
    let response = get(&server, "/v1/models", &[("host", "evil.example")]).await;
    assert_eq!(response.status(), 403);
    insta::assert_json_snapshot!(response.json::<Value>().await.unwrap(), @r#"
    {
      "detail": "the Host header names 'evil.example', which is neither an IP address, nor localhost, nor a name of this machine. To serve that name, add it to [server] allowed_hosts and set [server] api_key: without a key, anyone who reaches that name can use this server",
      "error": {
        "message": "the Host header names 'evil.example', which is neither an IP address, nor localhost, nor a name of this machine. To serve that name, add it to [server] allowed_hosts and set [server] api_key: without a key, anyone who reaches that name can use this server",
        "type": "permission_error",
        "param": null,
        "code": null
      }
    }
    "#);
    let page = get(&server, "/v1/models", &[("origin", "https://evil.example")]).await;
    assert_eq!(page.status(), 403);
    assert!(!page.headers().contains_key("access-control-allow-origin"));
    let detail = page.json::<Value>().await.unwrap()["detail"].take();
    let advice = "the Origin header names 'https://evil.example', which is not a page of this server. To allow that page, add \
        its address to [server] cors_origins. If it is this server behind a proxy, let the proxy pass the Host header on";
    assert_eq!(detail, advice);
    let file = get(&server, "/v1/models", &[("origin", "null")]).await.text().await.unwrap();
    assert!(file.contains("Serve that page from an address"), "{file}");
    assert_eq!(get(&server, "/v1/models", &[("host", "localhost:8000")]).await.status(), 200);
}

#[tokio::test]
async fn every_path_except_health_needs_the_key() {
    let api_key = Some("s3cret".to_owned().into());
    let server = scripted(ServerConfig { api_key, ..ServerConfig::default() }).await;
    let refused = server.chat(&asking(json!({}))).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "invalid_api_key");
    let right = [("authorization", "Bearer s3cret")];
    assert_eq!(get(&server, "/v1/models", &right).await.status(), 200);
    assert_eq!(get(&server, "/v1/models", &[("authorization", "Bearer s3cre")]).await.status(), 401);
    assert_eq!(get(&server, "/nothing", &[]).await.status(), 401);
    assert_eq!(get(&server, "/health", &[]).await.status(), 200);
}

#[tokio::test]
async fn only_listed_origins_may_read_answers() {
    let app = "https://app.example.org";
    let closed = scripted(ServerConfig::default()).await;
    let answer = get(&closed, "/v1/models", &[("origin", "http://localhost:5173")]).await;
    assert!(!answer.headers().contains_key("access-control-allow-origin"));

    let cors_origins = vec![app.to_owned()];
    let open = scripted(ServerConfig { cors_origins, ..ServerConfig::default() }).await;
    let answer = get(&open, "/v1/models", &[("origin", app)]).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["access-control-allow-origin"]),
        (200, &app.parse().unwrap())
    );
    assert_eq!(get(&open, "/v1/models", &[("origin", "https://evil.example")]).await.status(), 403);
}

#[tokio::test]
async fn an_unlisted_page_is_a_stranger_even_in_the_owners_browser() {
    let app = "https://app.example.org";
    let cors_origins = vec![app.to_owned(), "*".to_owned()];
    let api_key = Some("s3cret".to_owned().into());
    let open = ServerConfig { cors_origins, ..ServerConfig::default() };
    let keyed = scripted(ServerConfig { api_key, ..open.clone() }).await;
    let open = scripted(open).await;
    let foreign = ("origin", "https://evil.example");
    assert_eq!(get(&open, "/v1/models", &[foreign]).await.status(), 200);
    assert_eq!(get(&open, "/metrics", &[foreign]).await.status(), 403);
    // Other requests are the owner's: from a program, from a listed page, with the key.
    assert_eq!(get(&open, "/metrics", &[]).await.status(), 200);
    assert_eq!(get(&open, "/metrics", &[("origin", app)]).await.status(), 200);
    let with_key = [foreign, ("authorization", "Bearer s3cret")];
    assert_eq!(get(&keyed, "/metrics", &with_key).await.status(), 200);
}

#[tokio::test]
async fn a_browser_gets_the_same_error_as_a_program() {
    let server = scripted(ServerConfig::default()).await;
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let hostile = ("origin", "<script>alert(1)</script>");
    let mut bodies = Vec::new();
    for accept in [browser, ("accept", "*/*")] {
        let answer = get(&server, "/", &[accept, hostile]).await;
        assert_eq!(answer.status(), 403);
        assert_eq!(answer.headers()["content-type"], "application/json");
        bodies.push(answer.json::<Value>().await.unwrap());
    }
    assert_eq!(bodies[0], bodies[1]);
    let detail = bodies[0]["detail"].as_str().unwrap();
    assert!(detail.contains("the Origin header names '<script>alert(1)</script>'"), "{detail}");
    assert!(detail.contains("add its address to [server] cors_origins"), "{detail}");

    let api_key = Some("s3cret".to_owned().into());
    let locked = scripted(ServerConfig { api_key, ..ServerConfig::default() }).await;
    let answer = get(&locked, "/v1/models", &[browser]).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    assert!(answer.text().await.unwrap().contains("this server needs a key"));
}

#[tokio::test]
async fn a_wrong_key_gets_another_message_than_none() {
    let api_key = Some("s3cret".to_owned().into());
    let server = scripted(ServerConfig { api_key, ..ServerConfig::default() }).await;
    for (header, expected) in [
        (None, "this server needs a key. "),
        (Some(("authorization", "Bearer ")), "this server needs a key. "),
        (Some(("authorization", "Bearer s3cre")), "the key of this request is wrong. "),
        (Some(("x-api-key", "other")), "the key of this request is wrong. "),
    ] {
        let headers: Vec<(&str, &str)> = header.into_iter().collect();
        let answer = get(&server, "/v1/models", &headers).await;
        assert_eq!(answer.status(), 401, "{headers:?}");
        let body = answer.json::<Value>().await.unwrap();
        assert_eq!(body["error"]["code"], "invalid_api_key");
        assert!(body["error"]["message"].as_str().unwrap().starts_with(expected), "{headers:?}: {body}");
    }
}

#[tokio::test]
async fn a_preflight_allows_the_headers_of_client_libraries() {
    let app = "https://app.example.org";
    let config = ServerConfig {
        cors_origins: vec![app.to_owned()],
        api_key: Some("s3cret".to_owned().into()),
        ..ServerConfig::default()
    };
    let server = scripted(config).await;
    let wishes = "authorization,content-type,x-stainless-lang,x-stainless-os";
    let preflight = [
        ("origin", app),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", wishes),
    ];
    let answer = asked(&server, Method::OPTIONS, "/v1/chat/completions", &preflight).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["access-control-allow-origin"], app);
    assert_eq!(answer.headers()["access-control-allow-headers"], wishes);
    assert!(answer.headers()["access-control-allow-methods"].to_str().unwrap().contains("POST"));
}

#[tokio::test]
async fn a_listed_page_may_read_its_error() {
    let app = "https://app.example.org";
    let config = ServerConfig {
        cors_origins: vec![app.to_owned()],
        api_key: Some("s3cret".to_owned().into()),
        ..ServerConfig::default()
    };
    let answer = get(&scripted(config).await, "/v1/models", &[("origin", app)]).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["access-control-allow-origin"]),
        (401, &app.parse().unwrap())
    );
}

#[tokio::test]
async fn a_listed_page_may_use_every_method_that_a_route_has() {
    let page = "https://app.example.org";
    let config = ServerConfig { cors_origins: vec![page.to_owned()], ..ServerConfig::default() };
    let server = scripted(config).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let headers = [("origin", page), ("access-control-request-method", method)];
        let answer = asked(&server, Method::OPTIONS, "/v1/chats/chat_1", &headers).await;
        let allowed = answer.headers()["access-control-allow-methods"].to_str().unwrap();
        assert!(allowed.split(',').any(|allowed| allowed == method), "{method}: {allowed}");
    }
}
