//! A request with all that it continues: what the engine is asked, and what is stored of it.

use std::collections::HashSet;

use hob_conversations::ConversationItem;
use hob_conversations::responses::limits::MAX_RESPONSE_BYTES;
use hob_core::request_budget::{self, MESSAGES};
use hob_core::{AgentPreference, AnswerWarning, GenerateRequest, OverBudget, tool_arguments};
use serde_json::Value;

use super::input::Item;
use super::item_ids::{conversation_items, identified};
use super::object::ResponseObject;
use super::output::OutputForm;
use super::request::{Continues, CreateRequest, ResponseOptions};
use super::tools::OfferedTools;
use super::transcript::{BROKEN_ARGUMENTS, Transcript};
use crate::error::{ApiError, ApiResult};
use crate::json::{over_budget, push_json};
use crate::openai::ignored_fields::IgnoredFields;

/// The response that a request begins.
#[derive(Debug, Clone)]
pub(super) struct NewResponse {
    pub(super) id: String,
    pub(super) created: u64,
    /// Whether responses can be stored at all.
    pub(super) has_store: bool,
}

/// A request that can be asked.
pub(super) struct ReadyRequest {
    pub(super) request: GenerateRequest,
    /// `None` if nothing of it is stored.
    pub(super) input: Option<StoredInput>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    pub(super) form: OutputForm,
    pub(super) object: ResponseObject,
    pub(super) warnings: Vec<AnswerWarning>,
}

/// The items that were asked, with their ids.
pub(super) struct StoredInput {
    /// A JSON array.
    pub(super) json: String,
    /// For a conversation, each by itself.
    pub(super) items: Vec<ConversationItem>,
}

/// Refuses more items than a request may have, before anything is done with them.
pub(super) fn check_item_count(count: usize) -> ApiResult<()> {
    match count > MESSAGES {
        true => Err(over_budget(OverBudget::too_many("input", count, "items", MESSAGES))),
        false => Ok(()),
    }
}

impl CreateRequest {
    /// The request with the items that come before its input. `input` are its own items, with references resolved. Takes long if
    /// they are large.
    pub(super) fn complete(
        self,
        before: &[Value],
        input: Vec<Value>,
        new: &NewResponse,
    ) -> ApiResult<ReadyRequest> {
        let CreateRequest { mut request, instructions, tools, tool_choice, continues, mut options, .. } =
            self;
        let (mut form, mut ignored, echo) = (self.form, self.ignored, self.echo);
        check_item_count(before.len() + input.len())?;
        let mut transcript = Transcript::new(instructions.as_deref());
        let answered: HashSet<&str> = before.iter().chain(&input).filter_map(answered_call).collect();
        // Read once already, so nothing in it is news.
        let mut told = IgnoredFields::default();
        for (index, item) in before.iter().enumerate() {
            match left_out(item, &answered) {
                Some(reason) => ignored.note(reason),
                None => transcript.push(format_args!("the stored item {index}"), item, &mut told)?,
            }
        }
        for (index, item) in input.iter().enumerate() {
            match left_out(item, &answered) {
                Some(reason) => ignored.note(reason),
                None => transcript.push(format_args!("input[{index}]"), item, &mut ignored)?,
            }
        }
        let mut offered = OfferedTools::default();
        offered.add_all("tools", &tools, &mut ignored)?;
        offered.add_all("additional_tools", &transcript.tools, &mut ignored)?;
        let is_agents = matches!(options.agent, AgentPreference::Named(_)) && offered.definitions.is_empty();
        request.tool_choice = offered.choose(&tool_choice, is_agents)?;
        request.tools = offered.definitions;
        request.messages = transcript.finish();
        form.custom = offered.custom;
        form.namespaces = offered.namespaces;
        request_budget::check_request(&request).map_err(|over| over_budget(as_written(over)))?;
        let mut warnings = ignored.into_warnings();

        let is_kept = new.has_store && (options.store || continues.conversation().is_some());
        let mut input = is_kept.then(|| StoredInput::new(input, before, new, &continues));
        // About what the response has without its output.
        let bytes = echo.0.len() + request.model.len() + input.as_ref().map_or(0, |input| input.json.len());
        if options.store && (!new.has_store || bytes > MAX_RESPONSE_BYTES) {
            if options.background {
                return Err(match new.has_store {
                    true => ApiError::invalid(
                        "input",
                        "the request is too large for a response in the background",
                    ),
                    false => ApiError::no_response_store(),
                });
            }
            options.store = false;
            warnings.push(AnswerWarning::Ignored("store".to_owned()));
            input = input.filter(|_| continues.conversation().is_some());
        }
        let object = ResponseObject::new(&new.id, new.created, &request.model, echo, options.store);
        Ok(ReadyRequest { request, input, continues, options, form, object, warnings })
    }
}

impl StoredInput {
    fn new(input: Vec<Value>, before: &[Value], new: &NewResponse, continues: &Continues) -> Self {
        let suffix = new.id.split_once('_').map_or(&*new.id, |(_, suffix)| suffix);
        let is_conversation = continues.conversation().is_some();
        // An id is in a conversation once.
        let taken = before.iter().filter(|_| is_conversation).filter_map(|item| item["id"].as_str());
        let items = identified(input, suffix, taken.map(str::to_owned).collect());
        let mut json = Vec::new();
        push_json(&mut json, &items);
        StoredInput {
            json: String::from_utf8(json).unwrap_or_default(),
            items: if is_conversation { conversation_items(&items) } else { Vec::new() },
        }
    }
}

/// What the answer says if a call that was cut off is left out.
const CUT_CALL: &str = "input[].status=incomplete";

/// Why an item is left out: it is a call that was cut off, or whose arguments are broken, and that was not run. Every engine would
/// refuse the conversation with it. Not every client sends the status back.
fn left_out(item: &Value, answered: &HashSet<&str>) -> Option<&'static str> {
    let written = match Item::kind(item)? {
        "function_call" => item["arguments"].as_str(),
        "custom_tool_call" => None,
        _ => return None,
    };
    if item["call_id"].as_str().is_some_and(|call| answered.contains(call)) {
        return None;
    }
    let is_broken = || written.is_some_and(|arguments| tool_arguments::replayable(arguments).is_none());
    match item["status"] == "incomplete" {
        true => Some(CUT_CALL),
        false => is_broken().then_some(BROKEN_ARGUMENTS),
    }
}

/// The call that an item is the output of.
fn answered_call(item: &Value) -> Option<&str> {
    match Item::kind(item) {
        Some("function_call_output" | "custom_tool_call_output") => item["call_id"].as_str(),
        _ => None,
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
