//! `GET /documents`: a page to add, search and forget documents, over `/v1/memory`. It contains no data, so anyone can load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Documents",
    html: include_str!("assets/documents/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/documents/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/shared/report.js"),
        include_str!("assets/documents/script.js"),
    ],
};

/// Assembled once.
static DOCUMENTS: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    DOCUMENTS.response()
}
