//! A request for a response, before the conversation that it continues is known.

use hob_core::{AgentPreference, GenerateRequest, ReplyMode};
use serde_json::Value;

use super::echo::EchoedFields;
use super::output::OutputForm;
use crate::openai::ignored_fields::IgnoredFields;

/// Where the conversation before the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Response(String),
    Conversation(String),
}

impl Continues {
    /// The conversation that it continues.
    pub(super) fn conversation(&self) -> Option<&str> {
        match self {
            Continues::Conversation(id) => Some(id),
            Continues::Nothing | Continues::Response(_) => None,
        }
    }

    /// The response that it continues.
    pub(super) fn response(&self) -> Option<&str> {
        match self {
            Continues::Response(id) => Some(id),
            Continues::Nothing | Continues::Conversation(_) => None,
        }
    }
}

/// What happens to a conversation that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truncation {
    /// Its oldest part is left out.
    Auto,
    /// It is an error.
    Disabled,
}

/// A valid request, still without the conversation that it continues.
#[derive(Debug)]
pub(crate) struct CreateRequest {
    /// Has no messages and no tools yet.
    pub(super) request: GenerateRequest,
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Value>,
    pub(super) tool_choice: Value,
    pub(super) input: Vec<Value>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    pub(super) form: OutputForm,
    pub(super) echo: EchoedFields,
    pub(super) ignored: IgnoredFields,
}

/// How a response is made and what happens to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResponseOptions {
    pub(super) mode: ReplyMode,
    pub(super) agent: AgentPreference,
    pub(super) store: bool,
    pub(super) background: bool,
    pub(super) truncation: Truncation,
}

impl CreateRequest {
    /// Whether stored items are needed.
    pub(super) fn needs_store(&self) -> bool {
        let is_reference = |item: &Value| item["type"] == "item_reference";
        self.continues != Continues::Nothing || self.input.iter().any(is_reference)
    }
}

impl Truncation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Truncation::Auto => "auto",
            Truncation::Disabled => "disabled",
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
