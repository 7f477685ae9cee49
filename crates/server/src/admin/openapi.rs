//! `GET /openapi.json`: this API, described for programs.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The description, with the version left open.
const DOCUMENT: &str = include_str!("openapi.json");

pub(crate) async fn show() -> Response {
    let document = DOCUMENT.replace("{version}", env!("CARGO_PKG_VERSION"));
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}
