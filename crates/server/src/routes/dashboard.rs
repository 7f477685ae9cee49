//! `GET /dashboard`: one page that shows what `/v1/savings` tells. It holds no data, so anybody may have it.

use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../../assets/dashboard/page.html");
const STYLE: &str = include_str!("../../assets/dashboard/style.css");
const SCRIPT: &str = include_str!("../../assets/dashboard/script.js");

/// Put together once: one page that needs nothing else.
static DASHBOARD: LazyLock<Dashboard> = LazyLock::new(Dashboard::assemble);

struct Dashboard {
    page: Bytes,
    policy: HeaderValue,
}

impl Dashboard {
    fn assemble() -> Self {
        let page = PAGE.replace("{style}", STYLE).replace("{script}", SCRIPT);
        let policy = policy(STYLE, SCRIPT);
        Dashboard {
            page: page.into(),
            // A hash is plain text. Should it ever not be, a page that may do nothing is the safe one.
            policy: HeaderValue::from_str(&policy)
                .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
        }
    }
}

pub(crate) async fn show() -> Response {
    let Dashboard { page, policy } = &*DASHBOARD;
    let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let headers = [
        fixed(header::CONTENT_TYPE, "text/html; charset=utf-8"),
        fixed(header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, policy.clone()),
        fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        fixed(header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page.clone()).into_response()
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

    #[test]
    fn a_hash_is_the_one_browsers_compute() {
        assert_eq!(hash("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
    }

    #[test]
    fn what_the_browser_hashes_is_what_stands_between_the_tags() {
        let page = String::from_utf8(DASHBOARD.page.to_vec()).unwrap();
        for (open, close, text) in [("<style>", "</style>", STYLE), ("<script>", "</script>", SCRIPT)] {
            assert_eq!((page.matches(open).count(), page.matches(close).count()), (1, 1), "{open}");
            let (start, end) = (page.find(open).unwrap() + open.len(), page.find(close).unwrap());
            assert_eq!(&page[start..end], text, "{open}");
            assert!(DASHBOARD.policy.to_str().unwrap().contains(&hash(text)), "{open}");
        }
    }

    #[test]
    fn the_page_fetches_nothing_from_anywhere() {
        let page = String::from_utf8(DASHBOARD.page.to_vec()).unwrap();
        let addresses: Vec<&str> = page.split("://").skip(1).collect();
        // The one address in it is the name of a vocabulary, not a place.
        assert!(addresses.iter().all(|rest| rest.starts_with("www.w3.org/2000/svg")), "{addresses:?}");
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "onclick="]
        {
            assert!(!page.contains(word), "{word}");
        }
    }
}
