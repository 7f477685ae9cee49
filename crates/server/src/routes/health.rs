//! `GET /health`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::router::App;

pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    if app.system.healthy().await {
        Json(json!({ "status": "ok" })).into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": "Engine unhealthy" }))).into_response()
    }
}
