//! `GET /health`.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;

use crate::support::TestServer;

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
