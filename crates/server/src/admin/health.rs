//! `GET /health`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::state::ServerState;
use crate::warning_header::WARNING;

/// The bodies are fixed by the specification. Other problems are in the warning header.
pub(crate) async fn show(State(state): State<Arc<ServerState>>) -> Response {
    let mut answer = if state.system.healthy().await {
        Json(json!({ "status": "ok" })).into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": "Engine unhealthy" }))).into_response()
    };
    if state.record.is_losing() {
        let lost = format!("calls-not-recorded={}", state.record.dropped());
        if let Ok(warning) = HeaderValue::try_from(lost) {
            answer.headers_mut().insert(WARNING, warning);
        }
    }
    answer
}
