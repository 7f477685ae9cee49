//! Tools, the choice among them, and the format of the answer, as clients write them.

use std::collections::HashSet;

use hob_core::{AgentPreference, JsonSchema, ResponseFormat, ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::blocks::note_rest;
use crate::error::{ApiError, ApiResult};
use crate::openai::ignored_fields::IgnoredFields;

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireTool {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
    strict: Option<bool>,
    /// The model learns of this tool when a tool search finds it.
    defer_loading: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The tools that the model gets. `found` are those that a tool search found.
pub(super) fn tools(
    wire: Vec<WireTool>,
    found: &HashSet<String>,
    ignored: &mut IgnoredFields,
) -> ApiResult<Vec<ToolDefinition>> {
    let mut tools = Vec::with_capacity(wire.len());
    for (index, tool) in wire.into_iter().enumerate() {
        tools.extend(tool.resolve(index, found, ignored)?);
    }
    Ok(tools)
}

impl WireTool {
    /// `None` for a tool that the model does not get.
    fn resolve(
        self,
        index: usize,
        found: &HashSet<String>,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Option<ToolDefinition>> {
        let is_custom = self.kind.as_deref().is_none_or(|kind| kind == "custom");
        let Some(parameters) = self.input_schema else {
            if is_custom {
                let field = format!("tools[{index}].input_schema");
                let message = format!("{field}: a tool needs a JSON Schema of its input");
                return Err(ApiError::invalid(field, message));
            }
            // A tool of Anthropic's servers, or one that only its models know without a schema.
            ignored.note(&format!("tools[].{}", self.kind.as_deref().unwrap_or_default()));
            return Ok(None);
        };
        let Some(name) = self.name.filter(|name| !name.is_empty()) else {
            let field = format!("tools[{index}].name");
            let message = format!("{field}: a tool needs a name");
            return Err(ApiError::invalid(field, message));
        };
        if !parameters.is_object() {
            let field = format!("tools[{index}].input_schema");
            let message = format!("{field}: expected a JSON Schema, which is an object");
            return Err(ApiError::invalid(field, message));
        }
        note_rest(ignored, "tools[]", &self.rest);
        if self.defer_loading == Some(true) && !found.contains(&name) {
            return Ok(None);
        }
        Ok(Some(ToolDefinition {
            name,
            description: self.description,
            parameters: Some(parameters),
            strict: self.strict,
        }))
    }
}

/// The field `tool_choice`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireToolChoice {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl WireToolChoice {
    /// The choice, and whether several calls at once are wanted.
    pub(super) fn resolve(
        self,
        tools: &[ToolDefinition],
        agent: &AgentPreference,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<(ToolChoice, Option<bool>)> {
        ignored.note_all("tool_choice", &self.rest);
        // An agent has tools of its own, and checks the choice itself.
        let of_agent = tools.is_empty() && matches!(agent, AgentPreference::Named(_));
        let invalid =
            |message: String| Err(ApiError::invalid("tool_choice", format!("tool_choice: {message}")));
        let choice = match (self.kind.as_str(), self.name) {
            ("auto", _) => ToolChoice::Auto,
            ("none", _) => ToolChoice::None,
            ("any", _) if of_agent || !tools.is_empty() => ToolChoice::Required,
            ("any", _) => {
                return invalid("a tool is required, but 'tools' has none that can be called".into());
            }
            ("tool", Some(name)) if of_agent || tools.iter().any(|tool| tool.name == name) => {
                ToolChoice::Function(name)
            }
            ("tool", Some(name)) => return invalid(format!("tool '{name}' is not in 'tools'")),
            ("tool", None) => return invalid("the type 'tool' needs 'name'".into()),
            (other, _) => {
                return invalid(format!("'{other}' is not a type. Types are auto, any, tool and none"));
            }
        };
        Ok((choice, self.disable_parallel_tool_use.map(|disabled| !disabled)))
    }
}

/// The field `output_config.format`, or the older `output_format`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireFormat {
    #[serde(rename = "type")]
    kind: String,
    schema: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl WireFormat {
    pub(super) fn resolve(self, field: &str, ignored: &mut IgnoredFields) -> ApiResult<ResponseFormat> {
        ignored.note_all(field, &self.rest);
        if self.kind != "json_schema" {
            let message = format!("{field}.type: '{}' is not a format. The format is json_schema", self.kind);
            return Err(ApiError::invalid(format!("{field}.type"), message));
        }
        match self.schema {
            Some(schema @ Value::Object(_)) => Ok(ResponseFormat::JsonSchema(JsonSchema {
                name: "answer".to_owned(),
                description: None,
                schema,
                strict: Some(true),
            })),
            _ => {
                let message = format!("{field}.schema: expected a JSON Schema, which is an object");
                Err(ApiError::invalid(format!("{field}.schema"), message))
            }
        }
    }
}
