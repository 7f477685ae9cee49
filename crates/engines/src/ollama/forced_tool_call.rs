//! Forced tool calls (`tool_choice` is `required` or names a tool).
//!
//! Ollama has no such option, but it can force the model to write JSON that follows a schema. So the prompt describes
//! the tools, the schema is that of a call, and the model's text is the call.

use std::borrow::Cow;

use hob_core::{GenerateRequest, ToolChoice, ToolDefinition};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::openai_compat::request::tool;
use crate::wire::unsupported_field::UnsupportedField;

/// What the model must write.
#[derive(Debug, Clone, Copy)]
pub enum ForcedCall<'a> {
    /// The arguments of this tool.
    Of(&'a ToolDefinition),
    /// A call of one of these.
    AnyOf(&'a [ToolDefinition]),
}

impl<'a> ForcedCall<'a> {
    /// `None` when the model decides whether to call a tool.
    pub fn demanded(request: &'a GenerateRequest) -> Result<Option<Self>, UnsupportedField> {
        match (&request.tool_choice, request.tools.as_slice()) {
            (_, []) | (None | Some(ToolChoice::Auto | ToolChoice::None), _) => Ok(None),
            (Some(ToolChoice::Required), [only]) => Ok(Some(ForcedCall::Of(only))),
            (Some(ToolChoice::Required), tools) => Ok(Some(ForcedCall::AnyOf(tools))),
            (Some(ToolChoice::Function(name)), tools) => match tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => Ok(Some(ForcedCall::Of(tool))),
                None => Err(UnsupportedField::because("tool_choice", "no tool of the request has that name")),
            },
        }
    }

    /// The schema of what the model writes.
    pub fn schema(self) -> Cow<'a, Value> {
        match self {
            ForcedCall::Of(ToolDefinition { parameters: Some(schema), .. }) => Cow::Borrowed(schema),
            ForcedCall::Of(_) => Cow::Owned(no_arguments()),
            ForcedCall::AnyOf(tools) => Cow::Owned(any_of(tools)),
        }
    }

    /// The instruction in the prompt. The schema alone prevents other text, but does not explain the tools.
    pub fn instruction(self) -> String {
        match self {
            ForcedCall::Of(definition) => format!(
                "Call this function now. Answer with its arguments only, as a JSON object that follows its parameters:\n{}",
                tool(definition)
            ),
            ForcedCall::AnyOf(tools) => {
                let tools: Vec<String> =
                    tools.iter().map(|definition| tool(definition).to_string()).collect();
                format!(
                    "Call one of these functions now. Answer with the call only, as a JSON object with the function's \"name\" and \
                     its \"arguments\":\n{}",
                    tools.join("\n")
                )
            }
        }
    }
}

fn no_arguments() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// A call of any of the tools. A reference is relative to the root of its schema, so each tool's schema moves under
/// `$defs` unchanged, and its references are adjusted.
fn any_of(tools: &[ToolDefinition]) -> Value {
    let mut definitions = Map::new();
    let mut calls = Vec::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tool_{index}");
        let root = format!("#/$defs/{place}");
        let mut schema = tool.parameters.clone().unwrap_or_else(no_arguments);
        move_references(&mut schema, &root);
        definitions.insert(place, schema);
        calls.push(json!({
            "type": "object",
            "properties": { "name": { "const": tool.name }, "arguments": { "$ref": root } },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        }));
    }
    json!({ "anyOf": calls, "$defs": definitions })
}

/// Makes references to the root of a schema, or below it, point to `root`. The depth of a schema is bounded when the
/// request is parsed.
fn move_references(schema: &mut Value, root: &str) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if name == "$ref" && reference.starts_with('#') => {
                        reference.replace_range(..1, root);
                    }
                    value => move_references(value, root),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, root)),
        _ => {}
    }
}

/// A call as the model writes it when it can choose between tools.
#[derive(Debug, Deserialize)]
pub struct WrittenCall {
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: Option<Value>) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            description: Some(format!("does {name}")),
            parameters,
            strict: None,
        }
    }

    fn demanding(choice: ToolChoice, tools: Vec<ToolDefinition>) -> GenerateRequest {
        GenerateRequest { tools, tool_choice: Some(choice), ..GenerateRequest::default() }
    }

    #[test]
    fn a_named_tool_is_its_parameters() {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let tools = vec![tool("now", None), tool("weather", Some(schema.clone()))];
        let request = demanding(ToolChoice::Function("weather".into()), tools.clone());
        let forced = ForcedCall::demanded(&request).unwrap().unwrap();
        assert_eq!(*forced.schema(), schema);
        assert!(forced.instruction().contains("\"name\":\"weather\""), "{}", forced.instruction());

        let request = demanding(ToolChoice::Function("now".into()), tools.clone());
        assert_eq!(*ForcedCall::demanded(&request).unwrap().unwrap().schema(), no_arguments());
        let request = demanding(ToolChoice::Function("never".into()), tools.clone());
        assert_eq!(ForcedCall::demanded(&request).unwrap_err().field, "tool_choice");
        for choice in [ToolChoice::Auto, ToolChoice::None] {
            assert!(ForcedCall::demanded(&demanding(choice, tools.clone())).unwrap().is_none());
        }
    }

    #[test]
    fn one_of_several_is_a_call_with_its_references_moved_along() {
        let tree = json!({
            "type": "object",
            "properties": { "left": { "$ref": "#" }, "leaf": { "$ref": "#/$defs/Leaf" } },
            "$defs": { "Leaf": { "type": "string", "enum": ["$ref", "#"] } },
        });
        let request = demanding(ToolChoice::Required, vec![tool("now", None), tool("plant", Some(tree))]);
        let forced = ForcedCall::demanded(&request).unwrap().unwrap();
        let call = |name: &str, index: usize| {
            json!({
                "type": "object",
                "properties": { "name": { "const": name }, "arguments": { "$ref": format!("#/$defs/tool_{index}") } },
                "required": ["name", "arguments"],
                "additionalProperties": false,
            })
        };
        assert_eq!(
            *forced.schema(),
            json!({
                "anyOf": [call("now", 0), call("plant", 1)],
                "$defs": {
                    "tool_0": { "type": "object", "properties": {} },
                    "tool_1": {
                        "type": "object",
                        "properties": {
                            "left": { "$ref": "#/$defs/tool_1" },
                            "leaf": { "$ref": "#/$defs/tool_1/$defs/Leaf" },
                        },
                        "$defs": { "Leaf": { "type": "string", "enum": ["$ref", "#"] } },
                    },
                },
            })
        );
    }
}
