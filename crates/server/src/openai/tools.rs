//! Tools and response formats as clients write them.

use std::collections::HashSet;

use hob_core::request_budget::TOOLS;
use hob_core::{AgentPreference, JsonSchema, OverBudget, ResponseFormat, ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ignored_fields::IgnoredFields;
use crate::error::{ApiError, ApiResult};
use crate::json::over_budget;

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
    pub(crate) fn resolve(self, index: usize, ignored: &mut IgnoredFields) -> ApiResult<ToolDefinition> {
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
    ) -> ApiResult<ToolDefinition> {
        ignored.note_all("functions[]", &self.rest);
        self.resolve(&format!("functions[{index}]"))
    }

    fn resolve(self, path: &str) -> ApiResult<ToolDefinition> {
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
pub(crate) fn require_object(schema: &Value, field: &str) -> ApiResult<()> {
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

impl<'a> ToolSource<'a> {
    pub(crate) fn of(agent: &AgentPreference, tools: &'a [ToolDefinition]) -> Self {
        match agent {
            AgentPreference::Named(_) if tools.is_empty() => ToolSource::Agent,
            AgentPreference::Named(_) | AgentPreference::Configured | AgentPreference::None => {
                ToolSource::Request(tools)
            }
        }
    }
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

/// Reads `auto`, `none`, `required` and `{"type": "function", "function": {"name": …}}`. [`allowed_tools`] reads the rest.
pub(crate) fn tool_choice(value: &Value, offered: ToolSource<'_>) -> ApiResult<ToolChoice> {
    let invalid = |message: String| Err(ApiError::invalid("tool_choice", message));
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" if offered.may_have_any() => Ok(ToolChoice::Required),
            "required" | "any" => invalid("a tool is required but 'tools' is empty".into()),
            other => invalid(format!(
                "'{other}' is not a choice. Choices are auto, none, required, a function by name, and allowed_tools"
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

/// A choice among some of the tools.
pub(crate) struct AllowedTools<'a> {
    /// The object with the list and the mode.
    pub(crate) path: &'static str,
    pub(crate) names: HashSet<&'a str>,
    /// The names in order.
    listed: Vec<&'a str>,
    mode: &'a str,
}

impl<'a> AllowedTools<'a> {
    /// Reads the list and the mode. `name` finds the name in an entry of the list.
    pub(crate) fn read(
        path: &'static str,
        choice: &'a Value,
        name: fn(&'a Value) -> Option<&'a str>,
    ) -> ApiResult<Self> {
        let Some(Value::Array(listed)) = choice.get("tools") else {
            let message = "allowed_tools needs a list of 'tools'";
            return Err(ApiError::invalid(format!("{path}.tools"), message));
        };
        if listed.len() > TOOLS {
            let over = OverBudget::too_many(&format!("{path}.tools"), listed.len(), "tools", TOOLS);
            return Err(over_budget(over));
        }
        let mode = choice.get("mode").and_then(Value::as_str).unwrap_or("auto");
        let listed: Vec<&str> = listed.iter().filter_map(name).collect();
        Ok(AllowedTools { path, names: listed.iter().copied().collect(), listed, mode })
    }

    /// Takes the other tools away.
    pub(crate) fn choose(&self, tools: &mut Vec<ToolDefinition>) -> ApiResult<ToolChoice> {
        let Self { path, names, listed, mode } = self;
        let wrong = |message: String| Err(ApiError::invalid(format!("{path}.tools"), message));
        let offered: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        if let Some(missing) = listed.iter().find(|name| !offered.contains(**name)) {
            return wrong(format!("tool '{missing}' is not in 'tools'"));
        }
        drop(offered);
        tools.retain(|tool| names.contains(tool.name.as_str()));
        match *mode {
            "auto" => Ok(ToolChoice::Auto),
            "required" if tools.is_empty() => {
                wrong("a tool is required, but none of the allowed ones can be offered by this server".into())
            }
            "required" => Ok(ToolChoice::Required),
            other => {
                let message = format!("'{other}' is not a mode. Modes are auto and required");
                Err(ApiError::invalid(format!("{path}.mode"), message))
            }
        }
    }
}

/// Reads `{"type": "allowed_tools", "allowed_tools": {…}}`; `None` for any other choice.
pub(crate) fn allowed_tools(choice: &Value) -> ApiResult<Option<AllowedTools<'_>>> {
    match choice.get("type").and_then(Value::as_str) {
        Some("allowed_tools") => {
            AllowedTools::read("tool_choice.allowed_tools", &choice["allowed_tools"], |tool| {
                tool["function"]["name"].as_str()
            })
            .map(Some)
        }
        _ => Ok(None),
    }
}

fn chosen_name(choice: &Map<String, Value>) -> Option<&Value> {
    let is_function = choice.get("type").is_none_or(|kind| kind == "function");
    choice.get("function").filter(|_| is_function)?.get("name")
}

/// Reads the legacy `function_call`: `auto`, `none` and `{"name": …}`.
pub(crate) fn legacy_choice(value: &Value, functions: &[ToolDefinition]) -> ApiResult<ToolChoice> {
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
    pub(crate) fn resolve(self, ignored: &mut IgnoredFields) -> ApiResult<ResponseFormat> {
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
