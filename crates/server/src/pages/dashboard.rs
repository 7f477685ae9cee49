//! `GET /dashboard`: a page that shows `/v1/savings`, `/v1/calls`, and `/v1/usage` to the owner. It contains no data, so anyone can load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Activity",
    html: include_str!("assets/dashboard/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/dashboard/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/dashboard/calls.js"),
        include_str!("assets/dashboard/script.js"),
    ],
};

/// Assembled once.
static DASHBOARD: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    DASHBOARD.response()
}
