//! The pages for documents, tasks, channels, activity, team and settings. Their scripts show and change what the API has. They contain no
//! data, so anyone can load them.

use std::sync::LazyLock;

use super::html_page::{HtmlPage, PageParts};
use crate::route_methods::{RouteMethods, get};

/// Their scripts turn no text into markup.
const NO_MARKUP: &str = "'none'";
const STYLE: &str = include_str!("assets/shared/report.css");
const FIGURES: &str = include_str!("assets/shared/figures.js");
const REPORT: &str = include_str!("assets/shared/report.js");

/// Adds, searches and forgets documents, over `/v1/memory`.
pub(crate) static DOCUMENTS: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Documents",
        html: include_str!("assets/documents/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/documents/style.css")],
        scripts: &[FIGURES, REPORT, include_str!("assets/documents/script.js")],
    })
});

/// Creates and changes tasks, over `/v1/tasks`.
pub(crate) static TASKS: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Tasks",
        html: include_str!("assets/tasks/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/tasks/style.css")],
        scripts: &[FIGURES, REPORT, include_str!("assets/tasks/script.js")],
    })
});

/// Shows the state of the channels, the last messages and who is trusted, over `/v1/channels`.
pub(crate) static CHANNELS: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Channels",
        html: include_str!("assets/channels/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/channels/style.css")],
        scripts: &[FIGURES, REPORT, include_str!("assets/channels/script.js")],
    })
});

/// `/dashboard`: shows `/v1/savings`, `/v1/calls`, and `/v1/usage` to the owner.
pub(crate) static ACTIVITY: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Activity",
        html: include_str!("assets/dashboard/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/dashboard/style.css")],
        scripts: &[
            FIGURES,
            include_str!("assets/dashboard/calls.js"),
            include_str!("assets/dashboard/script.js"),
        ],
    })
});

/// Creates and changes keys, over `/v1/keys`, `/v1/usage` and `/v1/audit`.
pub(crate) static TEAM: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Team",
        html: include_str!("assets/team/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/team/style.css")],
        scripts: &[
            FIGURES,
            include_str!("assets/shared/copy.js"),
            REPORT,
            include_str!("assets/team/script.js"),
        ],
    })
});

/// Shows and changes the configuration, over `/v1/settings`.
pub(crate) static SETTINGS: LazyLock<HtmlPage> = LazyLock::new(|| {
    HtmlPage::assemble(&PageParts {
        name: "Settings",
        html: include_str!("assets/settings/page.html"),
        trusted_types: NO_MARKUP,
        styles: &[STYLE, include_str!("assets/settings/style.css")],
        scripts: &[REPORT, include_str!("assets/settings/script.js")],
    })
});

/// The route of a page. It is assembled when it is first loaded.
pub(crate) fn route(page: &'static LazyLock<HtmlPage>) -> RouteMethods {
    get(move || async move { page.response() })
}
