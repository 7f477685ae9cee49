//! Headers of an answer: the engine that gave it, why its model was chosen, and warnings.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use hob_core::{AnswerWarning, CallerRole, ModelReason};

use crate::warning_header::{header_char, with_warnings};

/// Why a model was chosen that the caller did not name.
const MODEL_REASON: HeaderName = HeaderName::from_static("x-hob-model-reason");
/// The name of the engine that answers.
const ENGINE: HeaderName = HeaderName::from_static("x-hob-engine");
pub(super) const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What the headers say.
pub(super) struct AnswerHeaders<'a> {
    pub(super) engine: &'a str,
    pub(super) reason: Option<&'a ModelReason>,
    pub(super) role: CallerRole,
}

impl AnswerHeaders<'_> {
    pub(super) fn add_to<'w>(
        self,
        response: Response,
        warnings: impl Iterator<Item = &'w AnswerWarning>,
    ) -> Response {
        let mut response = with_warnings(response, warnings);
        let headers = response.headers_mut();
        // The reason can contain words of an engine.
        if let Some(reason) = self.reason.filter(|_| self.role.may_see_engine_details())
            && let Ok(value) =
                HeaderValue::try_from(reason.as_str().chars().map(header_char).collect::<String>())
        {
            headers.insert(MODEL_REASON, value);
        }
        if let Ok(key) = HeaderValue::try_from(self.engine) {
            headers.insert(ENGINE, key);
        }
        response
    }
}
