//! The header `x-hob-warning`: what of a request had no effect, or what is wrong with the server although it answers. And
//! `x-hob-queue`: the place of a request that waited for its turn.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use hob_core::AnswerWarning;

pub(crate) const WARNING: HeaderName = HeaderName::from_static("x-hob-warning");
const QUEUE: HeaderName = HeaderName::from_static("x-hob-queue");

/// Limits on what goes with an answer: some warnings repeat names that the caller chose.
const MAX_WARNINGS: usize = 48;
const MAX_WARNING_CHARS: usize = 128;

/// The response with a header for each warning.
pub(crate) fn with_warnings<'a>(
    mut response: Response,
    warnings: impl Iterator<Item = &'a AnswerWarning>,
) -> Response {
    for warning in warnings.take(MAX_WARNINGS) {
        let text: String = warning.text().chars().take(MAX_WARNING_CHARS).map(header_char).collect();
        if let Ok(value) = HeaderValue::try_from(text) {
            match warning {
                AnswerWarning::Queued { .. } => {
                    response.headers_mut().insert(QUEUE, value);
                }
                _ => {
                    response.headers_mut().append(WARNING, value);
                }
            }
        }
    }
    response
}

/// The response with `to` wherever a warning is `from`: an engine may know a field by another name than the client.
pub(crate) fn rename_warning(mut response: Response, from: &str, to: &'static str) -> Response {
    for (name, value) in response.headers_mut() {
        if *name == WARNING && value.as_bytes() == from.as_bytes() {
            *value = HeaderValue::from_static(to);
        }
    }
    response
}

/// Names can have any character, a header cannot.
pub(crate) fn header_char(c: char) -> char {
    if c.is_ascii_graphic() || c == ' ' { c } else { '?' }
}
