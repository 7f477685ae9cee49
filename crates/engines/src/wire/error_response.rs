//! The errors of engines: the body of an error response, in every format that engines use, and a 404 for an unknown
//! model.

use hob_core::EngineError;
use hob_net::whole_seconds;

/// Turns a 404 that mentions the model into [`EngineError::ModelNotFound`]. Any other 404 is about the path.
pub(crate) fn unknown_model(error: EngineError, model: &str) -> EngineError {
    match error {
        EngineError::Refused { engine, status: 404, message, param, .. }
            if param.as_deref() == Some("model") || message.contains("model") =>
        {
            EngineError::ModelNotFound { engine, model: model.to_owned(), available: Vec::new() }
        }
        other => other,
    }
}

/// The body of an error response, in any of the formats that engines use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EngineErrorBody {
    pub message: Option<String>,
    /// The engine's own code, if it says more than the status.
    pub code: Option<String>,
    pub param: Option<String>,
    /// A status inside the body, as in errors within a stream.
    pub status: Option<u16>,
    /// Seconds to wait before a retry, which Google sends in the body.
    pub retry_after: Option<u64>,
}

impl EngineErrorBody {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`, and plain text.
    pub fn read(body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(value) => Self::of(&value),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim();
                // An HTML page of a proxy is no use as a message.
                let message =
                    (!text.is_empty() && !text.starts_with('<')).then(|| text.chars().take(500).collect());
                EngineErrorBody { message, ..EngineErrorBody::default() }
            }
        }
    }

    pub fn of(value: &serde_json::Value) -> Self {
        // Google sends an error as a list when the request asked for a list of chunks.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").unwrap_or(value);
        let text = |key: &str| error.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let message = error.as_str().map(str::to_owned).or_else(|| text("message")).or_else(|| {
            match error.get("detail") {
                Some(serde_json::Value::String(detail)) => Some(detail.clone()),
                Some(detail) => Some(detail.to_string()),
                None => None,
            }
        });
        let status = ["code", "status"].iter().find_map(|key| {
            let code = error.get(key)?;
            let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        EngineErrorBody {
            message,
            code: code(error),
            param: text("param"),
            status,
            retry_after: retry_delay(error),
        }
    }

    /// An error that came with a success status. `None` when `body` is not an error.
    pub fn under_good_status(body: &[u8]) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_slice(body).ok()?;
        let object = value.get(0).unwrap_or(&value);
        let has_error = object.get("error").is_some_and(|error| !error.is_null());
        // SGLang puts the error's fields at the top level.
        let is_error = object.get("object").and_then(|kind| kind.as_str()) == Some("error");
        (has_error || is_error).then(|| Self::of(&value))
    }
}

/// The engine's code: `code` if it is a word (many engines put the status there), else `type` (Anthropic, llama.cpp)
/// or `status` (Google). A word that only repeats the status is not a code.
fn code(error: &serde_json::Value) -> Option<String> {
    ["code", "type", "status"].iter().find_map(|key| specific_code(error.get(key)?.as_str()?))
}

/// The word, if it says more than the status.
pub(crate) fn specific_code(word: &str) -> Option<String> {
    const REPEAT_THE_STATUS: [&str; 9] = [
        "error",
        "invalid_request_error",
        "BadRequestError",
        "Bad Request",
        "INVALID_ARGUMENT",
        "rate_limit_error",
        "RESOURCE_EXHAUSTED",
        "server_error",
        "InternalServerError",
    ];
    const MAX_CODE_BYTES: usize = 100;
    let is_word = !word.is_empty() && word.len() <= MAX_CODE_BYTES && word.parse::<u64>().is_err();
    (is_word && !REPEAT_THE_STATUS.contains(&word)).then(|| word.to_owned())
}

/// Seconds to wait, from `{"details": [{"retryDelay": "39.5s"}]}`.
fn retry_delay(error: &serde_json::Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    whole_seconds(delay.strip_suffix('s')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_read_in_every_shape_engines_use() {
        let read = |body: &str| EngineErrorBody::read(body.as_bytes());
        assert_eq!(
            read(r#"{"error":{"code":400,"message":"too long","type":"x","param":"messages"}}"#),
            EngineErrorBody {
                message: Some("too long".into()),
                code: Some("x".into()),
                param: Some("messages".into()),
                status: Some(400),
                retry_after: None,
            }
        );
        assert_eq!(
            read(
                r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[
                    {"@type":"type.googleapis.com/google.rpc.Help"},
                    {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.2s"}]}}]"#
            ),
            EngineErrorBody {
                message: Some("slow down".into()),
                code: None,
                param: None,
                status: Some(429),
                retry_after: Some(39),
            }
        );
        assert_eq!(
            read(r#"{"error":"model \"x\" not found"}"#).message.as_deref(),
            Some("model \"x\" not found")
        );
        assert_eq!(read(r#"{"object":"error","message":"no","code":400}"#).message.as_deref(), Some("no"));
        assert_eq!(read(r#"{"detail":"Not Found"}"#).message.as_deref(), Some("Not Found"));
        assert_eq!(read("Bad Gateway\n").message.as_deref(), Some("Bad Gateway"));
        assert_eq!(read("<html>oops</html>"), EngineErrorBody::default());
        assert_eq!(read(""), EngineErrorBody::default());
    }

    #[test]
    fn an_engines_own_code_is_found_and_a_status_is_none() {
        for (body, code) in [
            (
                r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                Some("context_length_exceeded"),
            ),
            (
                r#"{"error":{"type":"exceed_context_size_error","code":400}}"#,
                Some("exceed_context_size_error"),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
                Some("overloaded_error"),
            ),
            (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, Some("UNAVAILABLE")),
            (r#"{"error":{"type":"BadRequestError","code":400}}"#, None),
            (r#"{"error":{"type":"","code":"429"}}"#, None),
            (r#"{"error":"no"}"#, None),
        ] {
            assert_eq!(EngineErrorBody::read(body.as_bytes()).code.as_deref(), code, "{body}");
        }
        let endless = format!(r#"{{"error":{{"code":"{}"}}}}"#, "x".repeat(1000));
        assert_eq!(EngineErrorBody::read(endless.as_bytes()).code, None);
    }
}
