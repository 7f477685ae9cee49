//! A request for a response, before and after the conversation that it continues is known.

use hob_core::budget::{self, MESSAGES};
use hob_core::{AgentPreference, AnswerWarning, GenerateRequest, OverBudget, ReplyMode};
use serde_json::Value;

use super::echo::EchoedFields;
use super::output::OutputForm;
use super::tools::OfferedTools;
use super::transcript::Transcript;
use super::wire_request::WireRequest;
use crate::error::ApiError;
use crate::json::{over_budget, read};
use crate::openai::ignored_fields::IgnoredFields;

/// Where the conversation before the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Response(String),
    Conversation(String),
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

/// A request that can be asked.
pub(super) struct ReadyRequest {
    pub(super) request: GenerateRequest,
    /// The items of the input, with their ids, for the store.
    pub(super) input: Vec<Value>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    pub(super) form: OutputForm,
    pub(super) echo: EchoedFields,
    pub(super) warnings: Vec<AnswerWarning>,
}

impl CreateRequest {
    /// Parses a body. The error names the field.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        read::<WireRequest>(body)?.resolve()
    }

    /// Whether stored items are needed.
    pub(super) fn needs_store(&self) -> bool {
        let is_reference = |item: &Value| item["type"] == "item_reference";
        self.continues != Continues::Nothing || self.input.iter().any(is_reference)
    }

    /// The request with the items that come before its input. `input` are its own items, with references resolved.
    pub(super) fn complete(self, before: &[Value], input: Vec<Value>) -> Result<ReadyRequest, ApiError> {
        let CreateRequest { mut request, instructions, tools, tool_choice, continues, options, .. } = self;
        let (mut form, mut ignored) = (self.form, self.ignored);
        let items = before.len() + input.len();
        if items > MESSAGES {
            return Err(over_budget(OverBudget::too_many("input", items, "items", MESSAGES)));
        }
        let mut transcript = Transcript::new(instructions.as_deref());
        // Read once already, so nothing in it is news.
        let mut told = IgnoredFields::default();
        for (index, item) in before.iter().enumerate() {
            transcript.push(format_args!("the stored item {index}"), item, &mut told)?;
        }
        for (index, item) in input.iter().enumerate() {
            transcript.push(format_args!("input[{index}]"), item, &mut ignored)?;
        }
        let mut offered = OfferedTools::default();
        offered.add_all("tools", &tools, &mut ignored)?;
        offered.add_all("additional_tools", &transcript.tools, &mut ignored)?;
        let is_agents = matches!(options.agent, AgentPreference::Named(_)) && offered.definitions.is_empty();
        request.tool_choice = offered.choose(&tool_choice, is_agents)?;
        request.tools = offered.definitions;
        request.messages = transcript.finish();
        form.custom = offered.custom;
        budget::check_request(&request).map_err(|over| over_budget(as_written(over)))?;
        let warnings = ignored.into_warnings();
        Ok(ReadyRequest { request, input, continues, options, form, echo: self.echo, warnings })
    }
}

/// Names a field as this API does.
fn as_written(over: OverBudget) -> OverBudget {
    let field = match over.field.split_once('[') {
        Some(("messages", _)) => "input".to_owned(),
        Some(("tools", _)) => over.field.replace(".function", ""),
        _ => match over.field.strip_prefix("response_format.json_schema") {
            Some(rest) => format!("text.format{rest}"),
            None if over.field == "messages" => "input".to_owned(),
            None => over.field,
        },
    };
    OverBudget { field, ..over }
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
