//! Tools and response formats as clients write them.

use hob_core::{JsonSchema, ResponseFormat, ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ignored_fields::IgnoredFields;
use crate::error::ApiError;

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireTool {
    #[serde(rename = "type", default = "function_type")]
    kind: String,
    function: Option<WireFunction>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A function of a tool, or of the legacy `functions`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireFunction {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    strict: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

fn function_type() -> String {
    "function".to_owned()
}

impl WireTool {
    pub(crate) fn resolve(
        self,
        index: usize,
        ignored: &mut IgnoredFields,
    ) -> Result<ToolDefinition, ApiError> {
        if self.kind != "function" {
            let message = format!("'{}' is not a supported type of tool. Supported is 'function'", self.kind);
            return Err(ApiError::invalid(format!("tools[{index}].type"), message));
        }
        let Some(function) = self.function else {
            return Err(ApiError::invalid(format!("tools[{index}].function"), "a tool needs a 'function'"));
        };
        ignored.note_all("tools[]", &self.rest);
        ignored.note_all("tools[].function", &function.rest);
        function.resolve(&format!("tools[{index}].function"))
    }
}

impl WireFunction {
    /// An entry of the legacy `functions`.
    pub(crate) fn resolve_legacy(
        self,
        index: usize,
        ignored: &mut IgnoredFields,
    ) -> Result<ToolDefinition, ApiError> {
        ignored.note_all("functions[]", &self.rest);
        self.resolve(&format!("functions[{index}]"))
    }

    fn resolve(self, path: &str) -> Result<ToolDefinition, ApiError> {
        if self.name.is_empty() {
            return Err(ApiError::invalid(format!("{path}.name"), "a tool needs a name"));
        }
        if let Some(parameters) = &self.parameters {
            require_object(parameters, &format!("{path}.parameters"))?;
        }
        Ok(ToolDefinition {
            name: self.name,
            description: self.description,
            parameters: self.parameters,
            strict: self.strict,
        })
    }
}

/// A JSON Schema must be an object.
pub(crate) fn require_object(schema: &Value, field: &str) -> Result<(), ApiError> {
    if schema.is_object() {
        return Ok(());
    }
    Err(ApiError::invalid(field, format!("{field}: expected a JSON Schema, which is an object")))
}

/// The tools that a choice is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ToolSource<'a> {
    /// The tools in the request.
    Request(&'a [ToolDefinition]),
    /// The tools of an agent, which checks the choice itself.
    Agent,
}

impl ToolSource<'_> {
    fn may_have_any(self) -> bool {
        match self {
            ToolSource::Request(tools) => !tools.is_empty(),
            ToolSource::Agent => true,
        }
    }

    fn may_have(self, name: &str) -> bool {
        match self {
            ToolSource::Request(tools) => tools.iter().any(|tool| tool.name == name),
            ToolSource::Agent => true,
        }
    }
}

/// Reads `auto`, `none`, `required` and `{"type": "function", "function": {"name": …}}`.
pub(crate) fn tool_choice(value: &Value, offered: ToolSource<'_>) -> Result<ToolChoice, ApiError> {
    let invalid = |message: String| Err(ApiError::invalid("tool_choice", message));
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" if offered.may_have_any() => Ok(ToolChoice::Required),
            "required" | "any" => invalid("a tool is required but 'tools' is empty".into()),
            other => invalid(format!(
                "'{other}' is not a choice. Choices are auto, none, required, or a function by name"
            )),
        },
        Value::Object(object) => match chosen_name(object) {
            Some(Value::String(name)) if offered.may_have(name) => Ok(ToolChoice::Function(name.clone())),
            Some(Value::String(name)) => invalid(format!("tool '{name}' is not in 'tools'")),
            _ => invalid(
                "a chosen function is written {\"type\": \"function\", \"function\": {\"name\": \"…\"}}"
                    .into(),
            ),
        },
        _ => invalid("expected a word or an object".into()),
    }
}

fn chosen_name(choice: &Map<String, Value>) -> Option<&Value> {
    let is_function = choice.get("type").is_none_or(|kind| kind == "function");
    choice.get("function").filter(|_| is_function)?.get("name")
}

/// Reads the legacy `function_call`: `auto`, `none` and `{"name": …}`.
pub(crate) fn legacy_choice(value: &Value, functions: &[ToolDefinition]) -> Result<ToolChoice, ApiError> {
    let invalid = |message: String| Err(ApiError::invalid("function_call", message));
    match value {
        Value::String(word) if word == "auto" => Ok(ToolChoice::Auto),
        Value::String(word) if word == "none" => Ok(ToolChoice::None),
        Value::Object(object) => match object.get("name") {
            Some(Value::String(name)) if functions.iter().any(|function| function.name == *name) => {
                Ok(ToolChoice::Function(name.clone()))
            }
            Some(Value::String(name)) => invalid(format!("function '{name}' is not in 'functions'")),
            _ => invalid("a chosen function is written {\"name\": \"…\"}".into()),
        },
        _ => invalid("expected auto, none, or a function by name".into()),
    }
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireFormat {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<WireSchema>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct WireSchema {
    name: Option<String>,
    description: Option<String>,
    schema: Option<Value>,
    strict: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl WireFormat {
    pub(crate) fn resolve(self, ignored: &mut IgnoredFields) -> Result<ResponseFormat, ApiError> {
        ignored.note_all("response_format", &self.rest);
        match self.kind.as_str() {
            "text" => Ok(ResponseFormat::Text),
            "json_object" => Ok(ResponseFormat::JsonObject),
            "json_schema" => {
                let Some(WireSchema { name, description, schema: Some(schema), strict, rest }) =
                    self.json_schema
                else {
                    let message =
                        "a response format of type 'json_schema' needs 'json_schema' with a 'schema'";
                    return Err(ApiError::invalid("response_format.json_schema", message));
                };
                require_object(&schema, "response_format.json_schema.schema")?;
                ignored.note_all("response_format.json_schema", &rest);
                let name = name.unwrap_or_else(|| "answer".to_owned());
                Ok(ResponseFormat::JsonSchema(JsonSchema { name, description, schema, strict }))
            }
            other => Err(ApiError::invalid(
                "response_format.type",
                format!("'{other}' is not a response format. Formats are text, json_object and json_schema"),
            )),
        }
    }
}
