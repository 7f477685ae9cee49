//! `GET /models`: what the engines offer and what is loaded where, over `/v1/model-files`, `/api/pull` and `/api/delete`. It contains no data, so
//! anyone can load it.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::html_page::{HtmlPage, PageParts, accepts};
use crate::error::ApiError;

const PARTS: PageParts = PageParts {
    name: "Models",
    html: include_str!("assets/models/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/models/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/shared/report.js"),
        include_str!("assets/models/script.js"),
    ],
};

/// Assembled once.
pub(super) static MODELS: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

/// A client whose base URL lacks `/v1` asks here for the list of models.
pub(crate) async fn show(headers: HeaderMap) -> Response {
    let is_program = accepts(&headers, "application/json") && !accepts(&headers, "text/html");
    let mut response = match is_program {
        true => ApiError::no_such_path("/models", Some("/v1/models")).into_response(),
        false => MODELS.response(),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
