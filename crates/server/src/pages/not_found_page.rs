//! What a browser shows at an address without a page. Programs get an error instead.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use super::html_page::{HEAD, HtmlPage, THEME_SCRIPT, accepts, policy};

const PAGE: &str = include_str!("assets/not_found/page.html");
const STYLE: [&str; 2] = [include_str!("assets/shared/base.css"), include_str!("assets/shared/report.css")];

/// Where requests are those of programs, even in a browser.
const API: [&str; 3] = ["v1", "v2", "api"];

/// The document without its link to the chat, and its policy.
static ASSEMBLED: LazyLock<(String, HeaderValue)> = LazyLock::new(|| {
    let style = STYLE.concat();
    let document =
        PAGE.replace("{head}", HEAD.trim_end()).replace("{theme}", THEME_SCRIPT).replace("{style}", &style);
    (document, policy(&style, &[THEME_SCRIPT], "'none'"))
});

/// The page, for a browser at a path that does not exist.
pub(crate) fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let is_reader = matches!(*method, Method::GET | Method::HEAD) && accepts(headers, "text/html");
    let is_api = path.split('/').nth(1).is_some_and(|first| API.contains(&first));
    (is_reader && !is_api).then(|| {
        let mut response = page(path).response();
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        response
    })
}

/// The link is relative, so that it works below a path prefix of a proxy.
fn page(path: &str) -> HtmlPage {
    let (document, policy) = &*ASSEMBLED;
    let depth = path.matches('/').count().saturating_sub(1);
    let chat = if depth == 0 { "./".to_owned() } else { "../".repeat(depth) };
    HtmlPage { document: document.replace("{chat}", &chat).into(), policy: policy.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::html_page::hash;

    #[test]
    fn the_page_links_to_the_chat_and_its_policy_allows_what_it_has() {
        for (path, chat) in [("/chats", "./"), ("/a/b", "../"), ("/a/b/", "../../")] {
            let HtmlPage { document, policy } = page(path);
            let document = std::str::from_utf8(&document).unwrap();
            assert!(document.contains(&format!("href=\"{chat}\"")), "{path}: {document}");
            for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
                let inside = document.split(open).nth(1).unwrap().split(close).next().unwrap();
                assert!(policy.to_str().unwrap().contains(&hash(inside)), "{open}");
            }
        }
    }
}
