//! The pages over HTTP. `browser` tests the rendered pages.

use std::process::Command;

use hob_config::ServerConfig;
use reqwest::Method;
use serde_json::{Value, json};

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::scripted;

/// The pages, with their names in the navigation.
const PAGES: [(&str, &str); 8] = [
    ("/", "Chat"),
    ("/documents", "Documents"),
    ("/tasks", "Tasks"),
    ("/channels", "Channels"),
    ("/models", "Models"),
    ("/dashboard", "Activity"),
    ("/team", "Team"),
    ("/settings", "Settings"),
];

/// The largest page, uncompressed.
const MAX_PAGE_BYTES: usize = 200_000;

#[tokio::test]
async fn a_page_is_small() {
    let server = scripted(ServerConfig::default()).await;
    for (path, _) in PAGES {
        let get = server.client.get(server.url(path)).header("accept", "text/html");
        let page = get.send().await.unwrap().bytes().await.unwrap();
        assert!(page.len() < MAX_PAGE_BYTES, "{path} has {} bytes", page.len());
    }
}

#[tokio::test]
async fn the_content_security_policy_allows_only_the_own_server() {
    let server = scripted(ServerConfig::default()).await;
    for (path, _) in PAGES {
        let answer = server.client.get(server.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let policy = header("content-security-policy");
        for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        for loophole in ["unsafe", "*", "http:", "https:"] {
            assert!(!policy.contains(loophole), "{path}: {policy}");
        }
    }
}

#[tokio::test]
async fn a_page_needs_no_key_but_an_allowed_host() {
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
    let server = scripted(config).await;
    for (path, _) in PAGES {
        let get = || server.client.get(server.url(path));
        assert_eq!(get().send().await.unwrap().status(), 200, "{path}");
        assert_eq!(get().header("host", "evil.example").send().await.unwrap().status(), 403, "{path}");
        assert_eq!(
            get().header("origin", "https://evil.example").send().await.unwrap().status(),
            403,
            "{path}"
        );
    }
}

#[tokio::test]
async fn every_page_links_to_the_others() {
    let server = scripted(ServerConfig::default()).await;
    let entries = ["./", "documents", "tasks", "channels", "models", "dashboard", "team", "settings"];
    for (path, current) in PAGES {
        let get = server.client.get(server.url(path)).header("accept", "text/html");
        let page = get.send().await.unwrap().text().await.unwrap();
        let links: Vec<&str> =
            page.split("<li><a href=\"").skip(1).map(|rest| rest.split("</a>").next().unwrap()).collect();
        let linked: Vec<&str> = links.iter().map(|link| link.split('"').next().unwrap()).collect();
        assert_eq!(linked, entries, "{path}");
        let marked: Vec<&str> = links
            .iter()
            .filter_map(|link| link.split_once(" aria-current=\"page\">"))
            .map(|link| link.1)
            .collect();
        assert_eq!(marked, [current], "{path}");
    }
}

#[tokio::test]
async fn a_json_request_to_the_root_gets_the_address_of_the_api() {
    let server = scripted(ServerConfig::default()).await;
    let asked = async |method: Method, accept: &str| {
        server.client.request(method, server.url("/")).header("accept", accept).send().await.unwrap()
    };
    let answer = asked(Method::GET, "application/json").await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["vary"]), (404, &"accept".parse().unwrap()));
    let body: Value = answer.json().await.unwrap();
    assert_fits(&document_of(&server).await, "Error", &body);
    assert!(body["detail"].as_str().unwrap().contains("/v1"), "{body}");

    let head = asked(Method::HEAD, "*/*").await;
    assert_eq!((head.status().as_u16(), &head.headers()["vary"]), (200, &"accept".parse().unwrap()));
    assert!(head.bytes().await.unwrap().is_empty());
    assert_eq!(asked(Method::POST, "*/*").await.status(), 405);
}

#[tokio::test]
async fn browsers_are_redirected_to_the_chat_and_programs_get_the_api() {
    let api_key = Some("s3cret".to_owned().into());
    for config in [ServerConfig::default(), ServerConfig { api_key, ..ServerConfig::default() }] {
        let is_locked = config.api_key.is_some();
        let server = scripted(config).await;
        for path in ["/chat", "/chat/"] {
            let get = |accept: &str| server.client.get(server.url(path)).header("accept", accept).send();
            let page = get("text/html,application/xhtml+xml,*/*;q=0.8").await.unwrap();
            assert_eq!((page.status().as_u16(), page.url().path()), (200, "/"), "{path}");
            assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
            let answer = get("application/json").await.unwrap();
            assert_eq!(answer.status(), 404, "{path}");
            assert!(
                answer.text().await.unwrap().contains("/v1/chat/completions"),
                "{path}, key: {is_locked}"
            );
        }
    }
}

#[tokio::test]
async fn a_browser_at_an_unknown_address_gets_a_page_and_a_program_an_error() {
    let server = scripted(ServerConfig::default()).await;
    let get = async |path: &str, accept: &str| {
        server.client.get(server.url(path)).header("accept", accept).send().await.unwrap()
    };
    for (path, link) in [("/chats", "href=\"./\""), ("/old/chats", "href=\"../\"")] {
        let page = get(path, "text/html,application/xhtml+xml,*/*;q=0.8").await;
        assert_eq!((page.status().as_u16(), &page.headers()["vary"]), (404, &"accept".parse().unwrap()));
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = page.text().await.unwrap();
        assert!(text.contains("Not found") && text.contains(link), "{path}: {text}");
    }
    for (path, accept) in [("/chats", "*/*"), ("/chats", "application/json"), ("/v1/nothing", "text/html")] {
        let error = get(path, accept).await;
        assert_eq!(error.status(), 404, "{path} {accept}");
        let body: Value = error.json().await.unwrap();
        assert!(body["detail"].as_str().unwrap().contains("does not exist"), "{body}");
    }
}

#[tokio::test]
async fn markdown_is_rendered_for_the_pages() {
    let server = scripted(ServerConfig::default()).await;
    let rendered = async |body: Value| {
        let answer = server.client.post(server.url("/pages/markdown")).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let growing = json!({ "text": "# Gr\u{fc}\u{df}e \u{1f44b}\n\n<b>It</b> is **bol\n", "after": {} });
    let (status, body) = rendered(growing).await;
    assert_eq!(status, 200, "{body}");
    assert_fits(&document_of(&server).await, "MarkdownPieces", &body);
    let expected = json!({
        "pieces": [
            { "html": "<h3>Grüße 👋</h3>", "continues": false },
            { "html": "<p>&lt;b&gt;It&lt;/b&gt; is **bol</p>", "continues": false }
        ],
        "settled": 12,
        "after": { "rank": 1 },
    });
    assert_eq!(body, expected);
    // Large texts are rendered beside the worker threads.
    let (status, body) = rendered(json!({ "text": "word ".repeat(10_000) })).await;
    assert_eq!(
        (status, body["pieces"][0]["html"].as_str().unwrap().matches("word").count() > 1000),
        (200, true)
    );

    for (wrong, field) in [
        (json!({ "text": 7 }), "text"),
        (json!({ "text": "a".repeat((8 << 20) + 1) }), "text"),
        (json!({ "text": "a", "after": { "opening": "a".repeat(100_000) } }), "after.opening"),
    ] {
        let (status, body) = rendered(wrong).await;
        assert_eq!((status, body["error"]["param"].as_str()), (400, Some(field)), "{body}");
    }
}

#[tokio::test]
async fn rendering_needs_the_key_and_an_allowed_host() {
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
    let server = scripted(config).await;
    let post = || server.client.post(server.url("/pages/markdown")).json(&json!({ "text": "a" }));
    assert_eq!(post().send().await.unwrap().status(), 401);
    assert_eq!(post().bearer_auth("s3cret").send().await.unwrap().status(), 200);
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let refused = post().bearer_auth("s3cret").header(name, value).send().await.unwrap();
        assert_eq!(refused.status(), 403, "{name}");
    }
}

/// Scripts that create no DOM nodes are tested without a browser, in Node.js.
#[test]
fn the_scripts_of_the_chat_page_pass_their_tests() {
    let node = std::env::var("HOB_TEST_NODE")
        .expect("$HOB_TEST_NODE is not set: run this with './dev test', which finds node");
    let tests = ["highlight", "stream", "tree"]
        .map(|part| format!("{}/tests/chat_page/{part}.test.mjs", env!("CARGO_MANIFEST_DIR")));
    let ran = Command::new(node).arg("--test").args(tests).output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{output}");
    assert!(
        output.contains("a stream that ends without [DONE] is broken"),
        "the tests did not run: {output}"
    );
}
