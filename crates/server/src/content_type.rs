//! Which content types a request with a body may have.
//!
//! A foreign web page can make a browser send forms and empty requests without a preflight, but not JSON. So a request needs a JSON
//! content type. Clients of Ollama send JSON under other types: `curl -d` calls it a form. Under `/api/` that is accepted from programs,
//! which have none of the headers that browsers add to what a page sends.

use axum::http::{HeaderMap, header};

use crate::error::{ApiError, ApiResult};

/// Where clients of Ollama send their requests.
const OLLAMA: &str = "/api/";

/// Refuses a request whose content type a foreign web page could have sent.
pub(crate) fn check_content_type(path: &str, headers: &HeaderMap) -> ApiResult<()> {
    match path.starts_with(OLLAMA) && !is_from_page(headers) {
        true => Ok(()),
        false => require_json(headers),
    }
}

/// Refuses a request without a JSON content type, also one without a body.
pub(crate) fn require_json(headers: &HeaderMap) -> ApiResult<()> {
    let content_type = content_type(headers);
    if is_json(content_type) { Ok(()) } else { Err(ApiError::not_json(content_type)) }
}

/// Whether a web page may have sent this request. Every browser adds `Origin` to a POST or DELETE, `null` where it hides the page; the
/// others are in case one does not.
fn is_from_page(headers: &HeaderMap) -> bool {
    let is_named =
        [header::ORIGIN, header::REFERER, header::COOKIE].iter().any(|name| headers.contains_key(name));
    is_named || headers.keys().any(|name| name.as_str().starts_with("sec-"))
}

pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// `application/json` and its relatives (`application/x+json`), with or without parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn is_accepted(path: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        check_content_type(path, &headers).is_ok()
    }

    #[test]
    fn a_program_may_call_json_a_form_where_clients_of_ollama_do() {
        const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
        assert!(is_accepted("/api/chat", &[FORM]));
        assert!(is_accepted("/api/chat", &[]));
        assert!(!is_accepted("/v1/chat/completions", &[FORM]));
        assert!(!is_accepted("/v1/chat/completions", &[]));
    }

    #[test]
    fn a_page_must_send_json_everywhere() {
        const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
        for mark in [
            ("origin", "null"),
            ("origin", "https://evil.example"),
            ("referer", "https://evil.example/"),
            ("cookie", "a=b"),
            ("sec-fetch-site", "cross-site"),
            ("sec-ch-ua", "x"),
        ] {
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
                assert!(!is_accepted("/api/pull", &[mark, ("content-type", kind)]), "{mark:?} {kind}");
            }
            assert!(!is_accepted("/api/pull", &[mark]), "{mark:?}");
            assert!(is_accepted("/api/pull", &[mark, JSON]), "{mark:?}");
        }
    }

    #[test]
    fn json_is_known_by_its_content_type() {
        for good in
            ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"]
        {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json+x"]
        {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
