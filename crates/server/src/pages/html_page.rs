//! An HTML page with its style and script in one document, and the content security policy that allows only these. Knows what
//! all pages share, and no page in particular.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The markup around that of every page.
const FRAME: &str = include_str!("assets/shared/frame.html");
pub(super) const HEAD: &str = include_str!("assets/shared/head.html");
pub(super) const MARK: &str = include_str!("assets/shared/mark.svg");
pub(super) const NAV: &str = include_str!("assets/shared/nav.html");
pub(super) const DIALOG: &str = include_str!("assets/shared/dialog.html");
pub(super) const KEY_FORM: &str = include_str!("assets/shared/key.html");
pub(super) const SHARED_STYLES: [&str; 2] =
    [include_str!("assets/shared/base.css"), include_str!("assets/shared/nav.css")];
pub(super) const SHARED_SCRIPTS: [&str; 5] = [
    include_str!("assets/shared/nodes.js"),
    include_str!("assets/shared/key.js"),
    include_str!("assets/shared/nav.js"),
    include_str!("assets/shared/api.js"),
    include_str!("assets/shared/live.js"),
];
/// Runs in the head, before the first paint.
pub(super) const THEME_SCRIPT: &str = include_str!("assets/shared/theme.js");

/// The parts of one page. Styles and scripts are inserted in this order.
pub(crate) struct PageParts {
    /// Its entry in the navigation, and its title.
    pub(crate) name: &'static str,
    /// Between the navigation and the dialog.
    pub(crate) html: &'static str,
    /// The names of the script's policies that may turn text into markup, or `'none'`.
    pub(crate) trusted_types: &'static str,
    pub(crate) styles: &'static [&'static str],
    pub(crate) scripts: &'static [&'static str],
}

/// An assembled page.
pub(crate) struct HtmlPage {
    pub(super) document: Bytes,
    pub(super) policy: HeaderValue,
}

impl HtmlPage {
    pub(crate) fn assemble(parts: &PageParts) -> Self {
        let style: String = SHARED_STYLES.iter().chain(parts.styles).copied().collect();
        let script: String = SHARED_SCRIPTS.iter().chain(parts.scripts).copied().collect();
        // The script is inserted last, because it can contain `{key}`.
        let document = FRAME
            .replace("{page}", parts.html.trim_end())
            .replace("{title}", &parts.name.to_lowercase())
            .replace("{head}", HEAD.trim_end())
            .replace("{theme}", THEME_SCRIPT)
            .replace("{nav}", &navigation(parts.name))
            .replace("{dialog}", DIALOG.trim_end())
            .replace("{mark}", MARK.trim_end())
            .replace("{key}", KEY_FORM.trim_end())
            .replace("{style}", &style)
            .replace("{script}", &script);
        HtmlPage {
            document: document.into(),
            policy: policy(&style, &[THEME_SCRIPT, &script], parts.trusted_types),
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

/// Whether the `Accept` header names this type; `*/*` does not count.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|named| named.trim().eq_ignore_ascii_case(kind)))
}

/// The navigation on the page with this name.
pub(super) fn navigation(current: &str) -> String {
    let end = format!(">{current}</a>");
    NAV.trim_end().replace(&end, &format!(" aria-current=\"page\"{end}"))
}

/// The browser runs only these scripts and this style, by their hashes, and sends requests only to this server. The page cannot be
/// framed, and text becomes markup only where `trusted_types` allows it.
pub(super) fn policy(style: &str, scripts: &[&str], trusted_types: &str) -> HeaderValue {
    let scripts: Vec<String> = scripts.iter().map(|script| format!("'{}'", hash(script))).collect();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types {trusted_types}",
        scripts.join(" "),
        hash(style)
    );
    // A hash is a valid header value. If not, the fallback is a policy that allows nothing.
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

pub(super) fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
