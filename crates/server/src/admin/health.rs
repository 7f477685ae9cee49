//! `GET /health`, and the probes of orchestrators: `GET /health/live` and `GET /health/ready`.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::request_context::RequestContext;
use crate::state::SharedState;
use crate::warning_header::WARNING;

/// The bodies are fixed by the specification. Other problems are in the warning header.
pub(crate) async fn show(State(state): SharedState) -> Response {
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

/// Paths of the probes. They are not counted as requests: there are many of them, and none is anyone's.
pub(crate) const PROBES: [&str; 2] = ["/health/live", "/health/ready"];

/// Whether the process answers. Depends on nothing else, because a restart would repair nothing else.
pub(crate) async fn live() -> Response {
    probe_answer(StatusCode::OK, json!({ "status": "ok" }))
}

/// Whether the process should get requests. An engine that has answered once does not count: a Hob whose engine is away answers with an
/// error that says so, and all replicas share their engines.
///
/// The reason can name machines, so only the owner sees it.
pub(crate) async fn ready(State(state): SharedState, extensions: Extensions) -> Response {
    match state.readiness.problem() {
        None => probe_answer(StatusCode::OK, json!({ "status": "ok" })),
        Some(reason) if RequestContext::is_owner(&extensions) => {
            probe_answer(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "not ready", "reason": reason }))
        }
        Some(_) => probe_answer(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "not ready" })),
    }
}

fn probe_answer(code: StatusCode, body: Value) -> Response {
    (code, [(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
