//! A page of ours: HTML, style and script in one document that needs nothing else, and the content policy that holds the
//! browser to it. Knows what all pages share, and no page in particular.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

const HEAD: &str = include_str!("assets/shared/head.html");
const MARK: &str = include_str!("assets/shared/mark.svg");
const KEY_FORM: &str = include_str!("assets/shared/key.html");
const SHARED_STYLE: &str = include_str!("assets/shared/base.css");
const SHARED_SCRIPTS: [&str; 2] =
    [include_str!("assets/shared/nodes.js"), include_str!("assets/shared/key.js")];

/// What a page is made of, besides what all have. Styles and scripts stand in the page in this order.
pub(crate) struct PageParts {
    pub(crate) html: &'static str,
    pub(crate) styles: &'static [&'static str],
    pub(crate) scripts: &'static [&'static str],
}

/// A page, put together.
pub(crate) struct Page {
    document: Bytes,
    policy: HeaderValue,
}

impl Page {
    pub(crate) fn assemble(parts: &PageParts) -> Self {
        let style: String = std::iter::once(&SHARED_STYLE).chain(parts.styles).copied().collect();
        let script: String = SHARED_SCRIPTS.iter().chain(parts.scripts).copied().collect();
        // The script goes in last: `{key}` is an ordinary thing to write in one.
        let document = parts
            .html
            .replace("{head}", HEAD.trim_end())
            .replace("{mark}", MARK.trim_end())
            .replace("{key}", KEY_FORM.trim_end())
            .replace("{style}", &style)
            .replace("{script}", &script);
        Page {
            document: document.into(),
            // A hash is plain text. Should it ever not be, a page that may do nothing is the safe one.
            policy: HeaderValue::from_str(&policy(&style, &script))
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
        }
    }

    pub(crate) fn response(&self) -> Response {
        self.with(self.document.clone())
    }

    /// The same with these words, whoever they are from, where the page has `{words}`.
    pub(crate) fn saying(&self, words: &str) -> Response {
        let document = String::from_utf8_lossy(&self.document);
        self.with(document.replace("{words}", &escaped(words)).into())
    }

    fn with(&self, document: Bytes) -> Response {
        let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
        let headers = [
            fixed(header::CONTENT_TYPE, "text/html; charset=utf-8"),
            fixed(header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, self.policy.clone()),
            fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            fixed(header::REFERRER_POLICY, "no-referrer"),
        ];
        (headers, document).into_response()
    }
}

/// Whether the caller names this kind of answer; `*/*` names none.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|named| named.trim().eq_ignore_ascii_case(kind)))
}

/// Text that stays text between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The browser runs our script and our style, known by their hashes, and asks nobody but us. Nothing may frame the page, and
/// no text can become markup in it.
fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script),
        hash(style)
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{chat_page, dashboard};

    fn pages() -> [(&'static str, Page); 2] {
        [("dashboard", Page::assemble(&dashboard::PARTS)), ("chat", Page::assemble(&chat_page::PARTS))]
    }

    fn text(page: &Page) -> &str {
        std::str::from_utf8(&page.document).unwrap()
    }

    #[test]
    fn a_hash_is_the_one_browsers_compute() {
        assert_eq!(hash("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
    }

    #[test]
    fn what_the_browser_hashes_is_what_stands_between_the_tags() {
        for (name, page) in pages() {
            let document = text(&page);
            for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
                let counts = (document.matches(open).count(), document.matches(close).count());
                assert_eq!(counts, (1, 1), "{name} {open}");
                let inside = document.split(open).nth(1).unwrap().split(close).next().unwrap();
                assert!(page.policy.to_str().unwrap().contains(&hash(inside)), "{name} {open}");
            }
        }
    }

    #[test]
    fn every_part_finds_its_place() {
        for (name, page) in pages() {
            let document = text(&page);
            let markup = document.split("<style>").next().unwrap().to_owned()
                + document.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
            assert!(!markup.contains('{'), "{name}: {markup}");
            for part in [HEAD, MARK, KEY_FORM, SHARED_STYLE, SHARED_SCRIPTS[0], SHARED_SCRIPTS[1]] {
                assert_eq!(document.matches(part.trim_end()).count(), 1, "{name}: {part}");
            }
        }
    }

    #[test]
    fn pages_fetch_nothing_from_anywhere() {
        for (name, page) in pages() {
            let document = text(&page);
            let addresses: Vec<&str> = document.split("://").skip(1).collect();
            // The one address in it is the name of a vocabulary, not a place.
            let is_name = |rest: &&str| rest.starts_with("www.w3.org/2000/svg");
            assert!(addresses.iter().all(is_name), "{name}: {addresses:?}");
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                " style=",
                "onclick=",
                "<img",
            ] {
                assert!(!document.contains(word), "{name}: {word}");
            }
        }
    }
}
