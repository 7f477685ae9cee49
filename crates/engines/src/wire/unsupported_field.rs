//! A field of a request that a wire format cannot express.

use std::borrow::Cow;

use hob_core::EngineError;

use super::client::Endpoint;

/// The field, and what the caller can do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnsupportedField {
    /// Its path in the caller's request, such as `messages[2].name`.
    pub(crate) field: String,
    /// What to send instead, or why the field is not possible.
    pub(crate) hint: Option<Cow<'static, str>>,
}

impl UnsupportedField {
    pub(crate) fn new(field: impl Into<String>) -> Self {
        UnsupportedField { field: field.into(), hint: None }
    }

    pub(crate) fn because(field: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        UnsupportedField { field: field.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn into_error(self, endpoint: &Endpoint) -> EngineError {
        endpoint.unsupported(self.field, self.hint.as_deref())
    }
}
