//! `GET /health`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::openai::chat::WARNING;
use crate::router::App;

/// The bodies are those of the specification. What else is wrong is a warning beside them.
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    let mut answer = if app.system.healthy().await {
        Json(json!({ "status": "ok" })).into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": "Engine unhealthy" }))).into_response()
    };
    if app.record.is_losing() {
        let lost = format!("calls-not-recorded={}", app.record.dropped());
        if let Ok(warning) = HeaderValue::try_from(lost) {
            answer.headers_mut().insert(WARNING, warning);
        }
    }
    answer
}
