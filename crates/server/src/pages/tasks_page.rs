//! `GET /tasks`: a page to create and change tasks, over `/v1/tasks`. It contains no data, so anyone can load it.

use std::sync::LazyLock;

use axum::response::Response;

use super::html_page::{HtmlPage, PageParts};

pub(crate) const PARTS: PageParts = PageParts {
    name: "Tasks",
    html: include_str!("assets/tasks/page.html"),
    trusted_types: "'none'",
    styles: &[include_str!("assets/shared/report.css"), include_str!("assets/tasks/style.css")],
    scripts: &[
        include_str!("assets/shared/figures.js"),
        include_str!("assets/shared/report.js"),
        include_str!("assets/tasks/script.js"),
    ],
};

/// Assembled once.
static TASKS: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show() -> Response {
    TASKS.response()
}
