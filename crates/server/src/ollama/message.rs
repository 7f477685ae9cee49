//! A message of a conversation as clients of Ollama write it.

use hob_core::{Content, Message, Role, ToolCall};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::images::with_images;
use crate::error::ApiError;
use crate::openai::ignored_fields::IgnoredFields;

/// The chat-completions name of the reasoning.
const REASONING: &str = "reasoning_content";

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
    /// The message at `index` of the conversation, whose messages so far are `before`.
    pub(super) fn resolve(
        self,
        index: usize,
        before: &[Message],
        ignored: &mut IgnoredFields,
    ) -> Result<Message, ApiError> {
        let path = format!("messages[{index}].");
        let Some(role) = self.role.as_deref() else {
            return Err(ApiError::invalid(format!("{path}role"), "a message needs a 'role'"));
        };
        let role = Role::parse(&role.to_ascii_lowercase()).ok_or_else(|| {
            let message = format!("'{role}' is not a role. Roles are system, user, assistant and tool");
            ApiError::invalid(format!("{path}role"), message)
        })?;
        ignored.note_all("messages[]", &self.rest);
        let mut tool_calls = Vec::new();
        for (position, call) in self.tool_calls.into_iter().flatten().enumerate() {
            tool_calls.push(call.resolve((index, position), ignored));
        }
        let text = self.content.unwrap_or_default();
        let content = match with_images(text, self.images.unwrap_or_default(), &path)? {
            Content::Text(text) if text.is_empty() && role == Role::Assistant => Content::Empty,
            content => content,
        };
        let tool_name = self.tool_name.or(self.name).filter(|name| !name.is_empty());
        let answered = match role {
            Role::Tool => self.tool_call_id.or_else(|| answered_call(tool_name.as_deref(), before)),
            Role::System | Role::User | Role::Assistant => None,
        };
        let mut extra = Map::new();
        if let Some(thinking) = self.thinking.filter(|thinking| !thinking.is_empty()) {
            extra.insert(REASONING.to_owned(), Value::String(thinking));
        }
        // The name of a function belongs to its call, which a result without one does not have.
        let name = tool_name.filter(|_| answered.is_none());
        Ok(Message { role, content, name, tool_calls, tool_call_id: answered, extra })
    }
}

/// The id of the call that a result answers. Ollama's API has none: results come in the order of the calls, and may name the function.
fn answered_call(tool_name: Option<&str>, before: &[Message]) -> Option<String> {
    let asked = before.iter().rposition(|message| !message.tool_calls.is_empty())?;
    let is_answered = |call: &&ToolCall| {
        before[asked..].iter().any(|message| message.tool_call_id.as_deref() == Some(call.id.as_str()))
    };
    let open: Vec<&ToolCall> = before[asked].tool_calls.iter().filter(|call| !is_answered(call)).collect();
    let named = open.iter().find(|call| tool_name.is_none_or(|name| call.name == name));
    named.or(open.first()).map(|call| call.id.clone())
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
