//! `tools` and `tool_choice`. Functions and custom tools are offered to the model, also those in namespaces. Tools that only OpenAI runs
//! are skipped, and the answer names them.

use std::collections::HashSet;

use hob_core::request_budget::TOOLS;
use hob_core::{ToolChoice, ToolDefinition};
use serde_json::{Map, Value};

use super::custom_tools::{self, CustomFormat};
use super::namespaces::Namespaces;
use crate::error::{ApiError, ApiResult};
use crate::openai::ignored_fields::IgnoredFields;
use crate::openai::tools::AllowedTools;

/// The tools of a request that a model can call.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OfferedTools {
    pub(super) definitions: Vec<ToolDefinition>,
    /// The names of custom tools, whose calls have text instead of arguments.
    pub(super) custom: Vec<String>,
    pub(super) namespaces: Namespaces,
    /// The names of all.
    names: HashSet<String>,
}

impl OfferedTools {
    /// Adds the tools of a list at `path`.
    pub(super) fn add_all(
        &mut self,
        path: &str,
        tools: &[Value],
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        self.add_to("", path, tools, ignored)
    }

    /// The same for the tools of a namespace.
    fn add_to(
        &mut self,
        namespace: &str,
        path: &str,
        tools: &[Value],
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        for (index, tool) in tools.iter().enumerate() {
            self.add(namespace, &format!("{path}[{index}]"), tool, ignored)?;
        }
        Ok(())
    }

    /// The name under which a tool is offered. A request with too many tools is refused later, so their names need not differ.
    fn offered_name(&mut self, namespace: &str, name: &str) -> String {
        let Self { namespaces, names, .. } = self;
        let offered = namespaces.add(namespace, name, |name| names.len() < TOOLS && names.contains(name));
        self.names.insert(offered.clone());
        offered
    }

    fn add(
        &mut self,
        namespace: &str,
        path: &str,
        tool: &Value,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        let Value::Object(fields) = tool else {
            return Err(ApiError::invalid(path, format!("{path}: expected an object")));
        };
        let mut fields = Fields { path, fields };
        match fields.required_text("type")? {
            "function" => {
                let definition = ToolDefinition {
                    name: self.offered_name(namespace, &fields.name()?),
                    description: fields.text("description")?.map(str::to_owned),
                    parameters: fields.schema("parameters")?,
                    strict: fields.flag("strict")?,
                };
                fields.note_rest(&["name", "description", "parameters", "strict"], ignored);
                self.definitions.push(definition);
            }
            "custom" => {
                let name = self.offered_name(namespace, &fields.name()?);
                let description = fields.text("description")?.map(str::to_owned);
                let format = fields.format()?;
                fields.note_rest(&["name", "description", "format"], ignored);
                self.custom.push(name.clone());
                self.definitions.push(custom_tools::definition(name, description, format.as_ref()));
            }
            // There are none in namespaces.
            "namespace" if namespace.is_empty() => {
                let Some(Value::Array(tools)) = fields.fields.get("tools") else {
                    return Err(fields.wrong("tools", "an array"));
                };
                self.add_to(&fields.name()?, &format!("{path}.tools"), tools, ignored)?;
            }
            kind => ignored.note(&format!("{path}.type={kind}")),
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.definitions.iter().any(|tool| tool.name == name)
    }

    /// Reads `tool_choice`. A choice among some tools takes the others away.
    pub(super) fn choose(&mut self, choice: &Value, agent_has_tools: bool) -> ApiResult<Option<ToolChoice>> {
        let choice = &self.namespaces.resolved(choice);
        let invalid = |message: String| Err(ApiError::invalid("tool_choice", message));
        let has_any = agent_has_tools || !self.definitions.is_empty();
        match choice {
            Value::Null => Ok(None),
            Value::String(word) => match word.as_str() {
                "auto" => Ok(Some(ToolChoice::Auto)),
                "none" => Ok(Some(ToolChoice::None)),
                "required" if has_any => Ok(Some(ToolChoice::Required)),
                "required" => {
                    invalid("a tool is required, but 'tools' has none that this server can offer".into())
                }
                other => invalid(format!(
                    "'{other}' is not a choice. Choices are auto, none, required, a tool by name, and allowed_tools"
                )),
            },
            Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
                Some("function" | "custom") => match fields.get("name").and_then(Value::as_str) {
                    Some(name) if agent_has_tools || self.has(name) => {
                        Ok(Some(ToolChoice::Function(name.to_owned())))
                    }
                    Some(name) => invalid(format!("tool '{name}' is not in 'tools'")),
                    None => {
                        invalid("a chosen tool is written {\"type\": \"function\", \"name\": \"…\"}".into())
                    }
                },
                Some("allowed_tools") => self.allow(choice).map(Some),
                Some(kind) => {
                    invalid(format!("this server does not run the tool '{kind}', so it cannot be chosen"))
                }
                None => invalid("an object has a 'type': function, custom or allowed_tools".into()),
            },
            _ => invalid("expected a word or an object".into()),
        }
    }

    /// Keeps only the tools that an `allowed_tools` choice lists.
    fn allow(&mut self, choice: &Value) -> ApiResult<ToolChoice> {
        let allowed = AllowedTools::read("tool_choice", choice, |tool| tool["name"].as_str())?;
        self.custom.retain(|name| allowed.names.contains(name.as_str()));
        allowed.choose(&mut self.definitions)
    }
}

/// The fields of a tool.
struct Fields<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn wrong(&self, field: &str, expected: &str) -> ApiError {
        let path = self.path;
        ApiError::invalid(format!("{path}.{field}"), format!("{path}.{field}: expected {expected}"))
    }

    fn text(&self, field: &str) -> ApiResult<Option<&'a str>> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(field, "a string")),
        }
    }

    fn required_text(&self, field: &str) -> ApiResult<&'a str> {
        let path = self.path;
        self.text(field)?
            .ok_or_else(|| ApiError::invalid(format!("{path}.{field}"), format!("{path}.{field} is missing")))
    }

    fn name(&self) -> ApiResult<String> {
        match self.required_text("name")? {
            "" => Err(ApiError::invalid(format!("{}.name", self.path), "a tool needs a name")),
            name => Ok(name.to_owned()),
        }
    }

    fn flag(&self, field: &str) -> ApiResult<Option<bool>> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(field, "true or false")),
        }
    }

    fn schema(&self, field: &str) -> ApiResult<Option<Value>> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            Some(_) => Err(self.wrong(field, "a JSON Schema, which is an object")),
        }
    }

    /// The format of a custom tool; `None` for any text.
    fn format(&self) -> ApiResult<Option<CustomFormat>> {
        let fields = match self.fields.get("format") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(self.wrong("format", "an object")),
        };
        let path = format!("{}.format", self.path);
        let format = Fields { path: &path, fields };
        match format.required_text("type")? {
            "text" => Ok(None),
            "grammar" => Ok(Some(CustomFormat {
                syntax: format.required_text("syntax")?.to_owned(),
                definition: format.required_text("definition")?.to_owned(),
            })),
            _ => Err(format.wrong("type", "text or grammar")),
        }
    }

    fn note_rest(&mut self, known: &[&str], ignored: &mut IgnoredFields) {
        for (field, value) in self.fields {
            if field != "type" && !known.contains(&field.as_str()) && !value.is_null() {
                ignored.note(&format!("tools[].{field}"));
            }
        }
    }
}
