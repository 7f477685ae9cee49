//! `GET /`: the chat page. It contains no data, so anyone can load it; its script calls the API under the API's rules.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::html_page::{HtmlPage, PageParts, accepts};
use crate::error::ApiError;

pub(crate) const PARTS: PageParts = PageParts {
    html: include_str!("assets/chat/page.html"),
    styles: &[include_str!("assets/chat/layout.css"), include_str!("assets/chat/thread.css")],
    scripts: &[
        include_str!("assets/chat/stream.js"),
        include_str!("assets/chat/inline.js"),
        include_str!("assets/chat/markdown.js"),
        include_str!("assets/chat/copy.js"),
        include_str!("assets/chat/render.js"),
        include_str!("assets/chat/conversations.js"),
        include_str!("assets/chat/rating.js"),
        include_str!("assets/chat/thread.js"),
        include_str!("assets/chat/server.js"),
        include_str!("assets/chat/list.js"),
        include_str!("assets/chat/tabs.js"),
        include_str!("assets/chat/talk.js"),
        include_str!("assets/chat/page.js"),
    ],
};

/// Assembled once.
static CHAT: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show(headers: HeaderMap) -> Response {
    let mut response =
        if wants_json(&headers) { ApiError::page_only().into_response() } else { CHAT.response() };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Redirects browsers from `/chat` to the page. Programs at the same path mean the API and get an error that names it. The
/// location is relative, so that it works below a path prefix of a proxy.
pub(crate) fn redirect(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let place = match path {
        "/chat" => "./",
        "/chat/" => "../",
        _ => return None,
    };
    let is_reader = matches!(*method, Method::GET | Method::HEAD) && accepts(headers, "text/html");
    let headers = [
        (header::LOCATION, HeaderValue::from_static(place)),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    is_reader.then(|| (StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

/// Whether the caller is a program at the wrong address, which gets an error in JSON. Browsers ask for HTML; a caller that asks
/// for nothing in particular, such as curl, gets the page.
fn wants_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json") && !accepts(headers, "text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_accepts_json_and_no_html_gets_json() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("*/*", false),
            ("text/html, application/json", false),
            ("application/json", true),
            ("Application/JSON; q=0.9, text/plain, */*", true),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_json(&headers), expected, "{accept}");
        }
        assert!(!wants_json(&HeaderMap::new()));
    }
}
