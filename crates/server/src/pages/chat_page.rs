//! `GET /`: the chat page. It contains no data, so anyone can load it; its script calls the API under the API's rules.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::html_page::{HtmlPage, PageParts, accepts};
use crate::error::ApiError;

const PARTS: PageParts = PageParts {
    name: "Chat",
    html: include_str!("assets/chat/page.html"),
    trusted_types: "hob-markdown",
    styles: &[
        include_str!("assets/chat/layout.css"),
        include_str!("assets/chat/thread.css"),
        include_str!("assets/chat/first_run.css"),
    ],
    scripts: &[
        include_str!("assets/chat/stream.js"),
        include_str!("assets/chat/tree.js"),
        include_str!("assets/chat/export.js"),
        include_str!("assets/chat/save_limits.js"),
        include_str!("assets/chat/highlight.js"),
        include_str!("assets/chat/markdown.js"),
        include_str!("assets/shared/copy.js"),
        include_str!("assets/shared/figures.js"),
        include_str!("assets/chat/chats.js"),
        include_str!("assets/chat/tab_sync.js"),
        include_str!("assets/chat/server.js"),
        include_str!("assets/chat/model_list.js"),
        include_str!("assets/chat/choices_menu.js"),
        include_str!("assets/chat/rating.js"),
        include_str!("assets/chat/steps.js"),
        include_str!("assets/chat/sources.js"),
        include_str!("assets/chat/usage.js"),
        include_str!("assets/chat/attachments.js"),
        include_str!("assets/chat/thread.js"),
        include_str!("assets/chat/branch.js"),
        include_str!("assets/chat/compare.js"),
        include_str!("assets/chat/list.js"),
        include_str!("assets/chat/assistants.js"),
        include_str!("assets/chat/agents.js"),
        include_str!("assets/chat/settings.js"),
        include_str!("assets/chat/local_chat_migration.js"),
        include_str!("assets/chat/conversation.js"),
        include_str!("assets/chat/page.js"),
        include_str!("assets/chat/first_run.js"),
    ],
};

/// Assembled once.
pub(super) static CHAT: LazyLock<HtmlPage> = LazyLock::new(|| HtmlPage::assemble(&PARTS));

pub(crate) async fn show(headers: HeaderMap) -> Response {
    let mut response = match reader(&headers) {
        RootReader::Person => CHAT.response(),
        RootReader::JsonProgram => ApiError::page_only().into_response(),
        RootReader::PlainProgram => {
            // Which of these it is depends on the client's name, so no cache may keep it.
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            ];
            (headers, "Ollama is running").into_response()
        }
    };
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

/// Who reads the answer at `/`.
#[derive(Debug, PartialEq, Eq)]
enum RootReader {
    /// Browsers ask for HTML. A caller that says nothing about itself gets the page too.
    Person,
    /// A program at the wrong address, which gets an error in JSON.
    JsonProgram,
    /// A program that takes anything, such as curl. Clients of Ollama look there whether it runs.
    PlainProgram,
}

fn reader(headers: &HeaderMap) -> RootReader {
    let client = headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let is_of_ollama = client.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("ollama"));
    // Every browser calls itself Mozilla.
    let is_browser = client.is_empty() || client.starts_with("Mozilla/");
    match () {
        () if accepts(headers, "text/html") => RootReader::Person,
        () if is_of_ollama => RootReader::PlainProgram,
        () if accepts(headers, "application/json") => RootReader::JsonProgram,
        () if is_browser => RootReader::Person,
        () => RootReader::PlainProgram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader_of(accept: Option<&'static str>, client: Option<&'static str>) -> RootReader {
        let headers = [(header::ACCEPT, accept), (header::USER_AGENT, client)];
        let given =
            headers.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_static(value?))));
        reader(&given.collect())
    }

    #[test]
    fn only_a_program_that_accepts_json_and_no_html_gets_json() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,*/*;q=0.8", RootReader::Person),
            ("*/*", RootReader::Person),
            ("text/html, application/json", RootReader::Person),
            ("application/json", RootReader::JsonProgram),
            ("Application/JSON; q=0.9, text/plain, */*", RootReader::JsonProgram),
            ("", RootReader::Person),
        ] {
            assert_eq!(reader_of(Some(accept), None), expected, "{accept}");
        }
        assert_eq!(reader_of(None, None), RootReader::Person);
    }

    #[test]
    fn a_program_that_looks_for_ollama_finds_it_and_a_browser_the_page() {
        const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        for (accept, client, expected) in [
            (Some("*/*"), "curl/8.14.1", RootReader::PlainProgram),
            (None, "Go-http-client/1.1", RootReader::PlainProgram),
            (Some("text/plain"), "node", RootReader::PlainProgram),
            // The heartbeat of Ollama's own program.
            (Some("application/json"), "ollama/0.13.5 (amd64 linux) Go/go1.24.1", RootReader::PlainProgram),
            (Some("application/json"), "curl/8.14.1", RootReader::JsonProgram),
            (Some("text/html"), "curl/8.14.1", RootReader::Person),
            (Some("*/*"), FIREFOX, RootReader::Person),
        ] {
            assert_eq!(reader_of(accept, Some(client)), expected, "{accept:?} {client}");
        }
    }
}
