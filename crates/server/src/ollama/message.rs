//! A message of a conversation as clients of Ollama write it.

use std::collections::VecDeque;

use hob_core::request_budget::MESSAGE_TOOL_CALLS;
use hob_core::{Content, Message, OverBudget, REASONING_CONTENT, Role, ToolCall};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::images::with_images;
use crate::error::{ApiError, ApiResult};
use crate::json::over_budget;
use crate::openai::ignored_fields::IgnoredFields;

/// The calls of the last message that made some, without those that have a result: id and name.
///
/// Ollama's API has no ids: results come in the order of the calls, and may name the function.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(VecDeque<(String, String)>);

impl OpenCalls {
    /// The id of the call that a result answers. From then on the call has its result.
    fn answer(&mut self, tool_name: Option<&str>) -> Option<String> {
        let named = self.0.iter().position(|(_, name)| tool_name.is_none_or(|wanted| name == wanted));
        self.0.remove(named.unwrap_or(0)).map(|(id, _)| id)
    }

    /// The same for a result that has the id.
    fn answer_id(&mut self, id: &str) {
        self.0.retain(|(open, _)| open != id);
    }

    fn replace(&mut self, calls: &[ToolCall]) {
        self.0 = calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
    }
}

/// The message before it is checked.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireMessage {
    role: Option<String>,
    content: Option<String>,
    thinking: Option<String>,
    images: Option<Vec<String>>,
    tool_calls: Option<Vec<WireToolCall>>,
    /// The function whose result this is.
    tool_name: Option<String>,
    tool_call_id: Option<String>,
    /// The older name of `tool_name`.
    name: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireToolCall {
    id: Option<String>,
    function: WireFunction,
    #[serde(rename = "type", default)]
    _kind: IgnoredAny,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireFunction {
    name: String,
    /// An object; some clients send it as text.
    #[serde(default)]
    arguments: Value,
    #[serde(rename = "index", default)]
    _index: IgnoredAny,
    /// Some clients repeat the description of the tool.
    #[serde(rename = "description", default)]
    _description: IgnoredAny,
}

impl WireMessage {
    /// The message at `index` of the conversation, before which `open` calls have no result.
    pub(super) fn resolve(
        self,
        index: usize,
        open: &mut OpenCalls,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Message> {
        let path = format!("messages[{index}].");
        let Some(role) = self.role.as_deref() else {
            return Err(ApiError::invalid(format!("{path}role"), "a message needs a 'role'"));
        };
        let role = Role::parse(&role.to_ascii_lowercase()).ok_or_else(|| {
            let message = format!("'{role}' is not a role. Roles are system, user, assistant and tool");
            ApiError::invalid(format!("{path}role"), message)
        })?;
        ignored.note_all("messages[]", &self.rest);
        let calls = self.tool_calls.as_ref().map_or(0, Vec::len);
        if calls > MESSAGE_TOOL_CALLS {
            let field = format!("{path}tool_calls");
            return Err(over_budget(OverBudget::too_many(&field, calls, "calls", MESSAGE_TOOL_CALLS)));
        }
        let mut tool_calls = Vec::with_capacity(calls);
        for (position, call) in self.tool_calls.into_iter().flatten().enumerate() {
            tool_calls.push(call.resolve((index, position), ignored));
        }
        let text = self.content.unwrap_or_default();
        let content = match with_images(text, self.images.unwrap_or_default(), &path)? {
            Content::Text(text) if text.is_empty() && role == Role::Assistant => Content::Empty,
            content => content,
        };
        let tool_name = self.tool_name.or(self.name).filter(|name| !name.is_empty());
        let answered = match (role, self.tool_call_id) {
            (Role::Tool, Some(id)) => {
                open.answer_id(&id);
                Some(id)
            }
            (Role::Tool, None) => open.answer(tool_name.as_deref()),
            (Role::System | Role::User | Role::Assistant, _) => None,
        };
        if !tool_calls.is_empty() {
            open.replace(&tool_calls);
        }
        let mut extra = Map::new();
        if let Some(thinking) = self.thinking.filter(|thinking| !thinking.is_empty()) {
            extra.insert(REASONING_CONTENT.to_owned(), Value::String(thinking));
        }
        // The name of a function belongs to its call, which a result without one does not have.
        let name = tool_name.filter(|_| answered.is_none());
        Ok(Message { role, content, name, tool_calls, tool_call_id: answered, extra })
    }
}

impl WireToolCall {
    /// The call at this place, by message and position.
    fn resolve(self, place: (usize, usize), ignored: &mut IgnoredFields) -> ToolCall {
        ignored.note_all("messages[].tool_calls[]", &self.rest);
        let arguments = match self.function.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text,
            object => object.to_string(),
        };
        let id = self.id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}_{}", place.0, place.1));
        ToolCall { id, name: self.function.name, arguments }
    }
}
