//! A message of a conversation as clients write it.

use std::collections::HashMap;
use std::fmt;

use hob_core::{Content, Message, Role, ToolCall};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::content::WireContent;
use super::ignored_fields::IgnoredFields;
use crate::error::{ApiError, ApiResult};

/// The role of a function's result in the older API.
const FUNCTION: &str = "function";

/// The message before it is checked.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireMessage {
    role: Option<String>,
    content: Option<WireContent>,
    name: Option<String>,
    tool_calls: Option<Vec<WireToolCall>>,
    tool_call_id: Option<String>,
    /// A call in the older API.
    function_call: Option<WireFunction>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireToolCall {
    id: String,
    function: WireFunction,
    #[serde(rename = "type", default)]
    _kind: IgnoredAny,
    /// Some clients leave the index of a stream's pieces in.
    #[serde(rename = "index", default)]
    _index: IgnoredAny,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireFunction {
    name: String,
    /// JSON text; some clients send the object itself.
    #[serde(default)]
    arguments: Value,
}

impl WireMessage {
    /// The message at `index` of the conversation, whose messages so far are `before`.
    pub(crate) fn resolve(
        self,
        index: usize,
        before: &[Message],
        calls: &mut LastCalls,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Message> {
        let path = format_args!("messages[{index}]");
        let Some(role) = self.role.as_deref() else {
            return Err(ApiError::invalid(format!("{path}.role"), "a message needs a 'role'"));
        };
        let answered = match role {
            FUNCTION => Some(calls.answered_by(&path, self.name.as_deref(), before)?),
            _ => None,
        };
        let role = if answered.is_some() { Some(Role::Tool) } else { Role::parse(role) };
        let role = role.ok_or_else(|| {
            let message = format!(
                "'{}' is not a role. Roles are system, developer, user, assistant, tool and function",
                self.role.as_deref().unwrap_or_default()
            );
            ApiError::invalid(format!("{path}.role"), message)
        })?;
        let content = match self.content {
            Some(content) => content.resolve(&path, ignored)?,
            None => None,
        };
        let content = match (content, role) {
            (Some(content), _) => content,
            (None, Role::Assistant) => Content::Empty,
            // An empty result is a result.
            (None, Role::Tool) => Content::Text(String::new()),
            (None, Role::System | Role::User) => {
                let message = format!("a message with the role '{}' needs 'content'", role.as_str());
                return Err(ApiError::invalid(format!("{path}.content"), message));
            }
        };
        let mut tool_calls: Vec<ToolCall> =
            self.tool_calls.into_iter().flatten().map(|call| call.resolve(ignored)).collect();
        if let Some(call) = self.function_call {
            if role == Role::Assistant && tool_calls.is_empty() {
                tool_calls.push(call.resolve(format!("function_call_{index}")));
            } else {
                ignored.note("messages[].function_call");
            }
        }
        let mut extra = self.extra;
        // Clients send our answers back, with null fields.
        extra.retain(|_, value| !value.is_null());
        Ok(Message {
            role,
            content,
            name: self.name.filter(|_| answered.is_none()),
            tool_calls,
            tool_call_id: answered.or(self.tool_call_id),
            extra,
        })
    }
}

/// The last call of each function in a conversation. Each message is looked at once, and only if a message has the role `function`.
#[derive(Default)]
pub(crate) struct LastCalls {
    /// The number of messages that were looked at.
    read: usize,
    /// The id of the call, by the name of the function.
    ids: HashMap<String, String>,
}

impl LastCalls {
    /// The id of the call that a message with the role `function` answers: the last one of that function.
    fn answered_by(
        &mut self,
        path: &dyn fmt::Display,
        name: Option<&str>,
        before: &[Message],
    ) -> ApiResult<String> {
        let field = || format!("{path}.name");
        let Some(name) = name else {
            return Err(ApiError::invalid(field(), "a message with the role 'function' needs 'name'"));
        };
        let calls = before.iter().skip(self.read).flat_map(|message| &message.tool_calls);
        self.ids.extend(calls.map(|call| (call.name.clone(), call.id.clone())));
        self.read = before.len();
        self.ids.get(name).cloned().ok_or_else(|| {
            ApiError::invalid(field(), format!("no message before it calls the function '{name}'"))
        })
    }
}

impl WireToolCall {
    fn resolve(self, ignored: &mut IgnoredFields) -> ToolCall {
        ignored.note_all("messages[].tool_calls[]", &self.rest);
        self.function.resolve(self.id)
    }
}

impl WireFunction {
    fn resolve(self, id: String) -> ToolCall {
        let arguments = match self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text,
            object => object.to_string(),
        };
        ToolCall { id, name: self.name, arguments }
    }
}
