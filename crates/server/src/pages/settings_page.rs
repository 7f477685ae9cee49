//! `GET /settings`: a page that shows and changes the configuration, over `/v1/settings`. It contains no data, so anyone can load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Settings",
    html: include_str!("assets/settings/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/settings/style.css")],
    scripts: &[include_str!("assets/shared/report.js"), include_str!("assets/settings/script.js")],
};

/// Assembled once.
static SETTINGS: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    SETTINGS.response()
}
