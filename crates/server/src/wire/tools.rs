//! Tools, and what form the answer has to take, as clients write them.

use hob_core::{JsonSchema, ResponseFormat, ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireTool {
    #[serde(rename = "type", default = "function_type")]
    kind: String,
    #[serde(default)]
    function: Option<WireFunction>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    strict: Option<bool>,
}

fn function_type() -> String {
    "function".to_owned()
}

impl WireTool {
    pub(crate) fn resolve(self, index: usize) -> Result<ToolDefinition, ApiError> {
        if self.kind != "function" {
            let message =
                format!("'{}' is no kind of tool that can be passed on; there is 'function'", self.kind);
            return Err(ApiError::invalid(format!("tools[{index}].type"), message));
        }
        let Some(function) = self.function else {
            return Err(ApiError::invalid(format!("tools[{index}].function"), "a tool needs a 'function'"));
        };
        if function.name.is_empty() {
            return Err(ApiError::invalid(format!("tools[{index}].function.name"), "a tool needs a name"));
        }
        Ok(ToolDefinition {
            name: function.name,
            description: function.description,
            parameters: function.parameters,
            strict: function.strict,
        })
    }
}

/// Whose tools a choice is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Offered<'a> {
    /// Those that the request brings.
    Brought(&'a [ToolDefinition]),
    /// Those of an agent, which knows them better.
    ByAgent,
}

impl Offered<'_> {
    fn may_have_any(self) -> bool {
        match self {
            Offered::Brought(tools) => !tools.is_empty(),
            Offered::ByAgent => true,
        }
    }

    fn may_have(self, name: &str) -> bool {
        match self {
            Offered::Brought(tools) => tools.iter().any(|tool| tool.name == name),
            Offered::ByAgent => true,
        }
    }
}

/// Reads `auto`, `none`, `required` and `{"type": "function", "function": {"name": …}}`.
pub(crate) fn tool_choice(value: &Value, offered: Offered<'_>) -> Result<ToolChoice, ApiError> {
    let invalid = |message: String| Err(ApiError::invalid("tool_choice", message));
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" if offered.may_have_any() => Ok(ToolChoice::Required),
            "required" | "any" => invalid("a tool is required but 'tools' is empty".into()),
            other => invalid(format!(
                "'{other}' is no choice; there are auto, none, required, or a function by name"
            )),
        },
        Value::Object(object) => match object.get("function").and_then(|function| function.get("name")) {
            Some(Value::String(name)) if offered.may_have(name) => Ok(ToolChoice::Function(name.clone())),
            Some(Value::String(name)) => invalid(format!("there is no tool '{name}' in 'tools'")),
            _ => invalid(
                "a chosen function is written {\"type\": \"function\", \"function\": {\"name\": \"…\"}}"
                    .into(),
            ),
        },
        _ => invalid("expected a word or an object".into()),
    }
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireFormat {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    json_schema: Option<WireSchema>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireSchema {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    strict: Option<bool>,
}

impl WireFormat {
    pub(crate) fn resolve(self) -> Result<ResponseFormat, ApiError> {
        match self.kind.as_str() {
            "text" => Ok(ResponseFormat::Text),
            "json_object" => Ok(ResponseFormat::JsonObject),
            "json_schema" => {
                let Some(WireSchema { name, description, schema: Some(schema), strict }) = self.json_schema
                else {
                    let message =
                        "a response format of type 'json_schema' needs 'json_schema' with a 'schema'";
                    return Err(ApiError::invalid("response_format.json_schema", message));
                };
                let name = name.unwrap_or_else(|| "answer".to_owned());
                Ok(ResponseFormat::JsonSchema(JsonSchema { name, description, schema, strict }))
            }
            other => Err(ApiError::invalid(
                "response_format.type",
                format!("'{other}' is no response format; there are text, json_object and json_schema"),
            )),
        }
    }
}
