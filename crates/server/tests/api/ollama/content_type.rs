//! Clients of Ollama send JSON under any content type; a foreign web page cannot use that.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;

use crate::support::TestServer;

const FORM: &str = "application/x-www-form-urlencoded";

async fn status(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> u16 {
    let body = r#"{"model":"m","prompt":"hi","input":"hi","messages":[{"role":"user","content":"hi"}]}"#;
    let mut request = server.client.post(server.url(path)).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn curl_needs_no_header() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for path in ["/api/chat", "/api/generate", "/api/embed", "/api/show"] {
        assert_eq!(status(&server, path, &[("content-type", FORM)]).await, 200, "{path}");
        assert_eq!(status(&server, path, &[]).await, 200, "{path}");
    }
    assert_eq!(status(&server, "/v1/chat/completions", &[("content-type", FORM)]).await, 415);
}

#[tokio::test]
async fn a_form_of_a_web_page_is_refused_whatever_the_page_may_do() {
    for cors_origins in [vec![], vec!["*".to_owned()], vec!["https://page.example".to_owned()]] {
        let config = ServerConfig { cors_origins, ..ServerConfig::default() };
        let listed = !config.cors_origins.is_empty();
        let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
        for origin in ["https://page.example", "null"] {
            for kind in [FORM, "text/plain", "multipart/form-data; boundary=x"] {
                let asked = status(&server, "/api/chat", &[("origin", origin), ("content-type", kind)]).await;
                assert!([403, 415].contains(&asked), "{origin} {kind} {listed}: {asked}");
            }
        }
        // Without an origin, but from a page all the same.
        for mark in [("sec-fetch-site", "cross-site"), ("referer", "https://page.example/")] {
            assert_eq!(
                status(&server, "/api/chat", &[mark, ("content-type", "text/plain")]).await,
                415,
                "{mark:?}"
            );
        }
    }
}
