//! A page of ours: HTML, style and script in one document that needs nothing else, and the content policy that holds the
//! browser to it. Knows what all pages share, and no page in particular.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

pub(super) const HEAD: &str = include_str!("assets/shared/head.html");
pub(super) const MARK: &str = include_str!("assets/shared/mark.svg");
pub(super) const KEY_FORM: &str = include_str!("assets/shared/key.html");
pub(super) const SHARED_STYLE: &str = include_str!("assets/shared/base.css");
pub(super) const SHARED_SCRIPTS: [&str; 2] =
    [include_str!("assets/shared/nodes.js"), include_str!("assets/shared/key.js")];

/// What a page is made of, besides what all have. Styles and scripts stand in the page in this order.
pub(crate) struct PageParts {
    pub(crate) html: &'static str,
    pub(crate) styles: &'static [&'static str],
    pub(crate) scripts: &'static [&'static str],
}

/// A page, put together.
pub(crate) struct HtmlPage {
    pub(super) document: Bytes,
    pub(super) policy: HeaderValue,
}

impl HtmlPage {
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
        HtmlPage {
            document: document.into(),
            // A hash is plain text. Should it ever not be, a page that may do nothing is the safe one.
            policy: HeaderValue::from_str(&policy(&style, &script))
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
        }
    }

    pub(crate) fn response(&self) -> Response {
        let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
        let headers = [
            fixed(header::CONTENT_TYPE, "text/html; charset=utf-8"),
            fixed(header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, self.policy.clone()),
            fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            fixed(header::REFERRER_POLICY, "no-referrer"),
        ];
        (headers, self.document.clone()).into_response()
    }
}

/// Whether the caller names this kind of answer; `*/*` names none.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|named| named.trim().eq_ignore_ascii_case(kind)))
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

pub(super) fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
