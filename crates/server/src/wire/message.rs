//! A message of the conversation, as clients write it.

use std::fmt;

use hob_core::{Content, Message, Role, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::content::WireContent;
use crate::error::ApiError;

/// The message as typed.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireMessage {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Option<WireContent>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<WireToolCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireToolCall {
    id: String,
    function: WireFunction,
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
    /// The message at `path`, such as `messages[2]`.
    pub(crate) fn resolve(self, path: &dyn fmt::Display) -> Result<Message, ApiError> {
        let Some(role) = self.role else {
            return Err(ApiError::invalid(format!("{path}.role"), "a message needs a 'role'"));
        };
        let role = Role::parse(&role).ok_or_else(|| {
            let message =
                format!("'{role}' is no role; there are system, developer, user, assistant and tool");
            ApiError::invalid(format!("{path}.role"), message)
        })?;
        let content = match self.content {
            Some(content) => content.resolve(path)?,
            None => None,
        };
        let content = match content {
            Some(content) => content,
            None if role == Role::Assistant => Content::Empty,
            None => {
                let message = format!("a message of the role '{}' needs 'content'", role.as_str());
                return Err(ApiError::invalid(format!("{path}.content"), message));
            }
        };
        let mut extra = self.extra;
        // Clients echo our own answers back, with fields that mean "nothing".
        extra.retain(|_, value| !value.is_null());
        Ok(Message {
            role,
            content,
            name: self.name,
            tool_calls: self.tool_calls.into_iter().flatten().map(WireToolCall::resolve).collect(),
            tool_call_id: self.tool_call_id,
            extra,
        })
    }
}

impl WireToolCall {
    fn resolve(self) -> ToolCall {
        let arguments = match self.function.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text,
            object => object.to_string(),
        };
        ToolCall { id: self.id, name: self.function.name, arguments }
    }
}
