//! `GET /channels`: the state of the channels, the last messages and who is trusted, over `/v1/channels`. It contains no data, so
//! anyone can load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Channels",
    html: include_str!("assets/channels/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/channels/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/shared/report.js"),
        include_str!("assets/channels/script.js"),
    ],
};

/// Assembled once.
static CHANNELS: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    CHANNELS.response()
}
