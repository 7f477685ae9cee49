//! `GET /team`: a page to create and change keys, over `/v1/keys`, `/v1/usage` and `/v1/audit`. It contains no data, so anyone can
//! load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Team",
    html: include_str!("assets/team/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/team/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/shared/copy.js"),
        include_str!("assets/shared/report.js"),
        include_str!("assets/team/script.js"),
    ],
};

/// Assembled once.
static TEAM: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    TEAM.response()
}
