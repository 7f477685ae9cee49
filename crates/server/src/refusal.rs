//! Turned away at the gate: for a program the usual body, for a person with a browser the same sentence as a page.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::pages::html_page::{Page, PageParts, accepts};

const PARTS: PageParts = PageParts {
    html: include_str!("pages/assets/refused/page.html"),
    styles: &[include_str!("pages/assets/refused/style.css")],
    scripts: &[],
};

/// Put together once, but for the sentence.
static REFUSED: LazyLock<Page> = LazyLock::new(|| Page::assemble(&PARTS));

/// What is answered to a request with these headers.
pub(crate) fn refusal(error: ApiError, headers: &HeaderMap) -> Response {
    let mut response = if accepts(headers, "text/html") { as_page(error) } else { error.into_response() };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

fn as_page(error: ApiError) -> Response {
    let (page, body) = REFUSED.saying(error.message()).into_parts();
    let (mut head, _) = error.into_response().into_parts();
    head.headers.extend(page.headers);
    Response::from_parts(head, body)
}
