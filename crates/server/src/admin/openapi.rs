//! `GET /openapi.json`: the description of the API.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The description with a placeholder for the version.
const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn show() -> Response {
    let document = DOCUMENT.replace("{version}", env!("CARGO_PKG_VERSION"));
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}
