//! All tools by name. `tool_runner` runs the calls.

use std::fmt;
use std::sync::{Arc, OnceLock};

use hob_core::request_budget::check_schema;
use hob_core::{AskError, Tool, ToolDefinition, ToolSpec};
use jsonschema::Validator;
use thiserror::Error;

use super::short_schema::{short_description, short_schema};
use super::taint::AllowedAfterUntrusted;

/// Why a tool cannot be added or selected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolSetError {
    #[error("two tools have the name '{name}'; rename one of them")]
    Duplicate { name: String },

    #[error("the schema of the tool '{name}' is not a JSON schema: {reason}")]
    Schema { name: String, reason: String },

    /// Checking arguments against it could take for ever.
    #[error("the schema of the tool '{name}' cannot be used: {reason}")]
    SchemaRefused { name: String, reason: String },

    /// Available under a condition.
    #[error("the tool '{name}' is not available: {why}")]
    Absent { name: String, why: &'static str },

    #[error("there is no tool '{name}'{}", advice(near, known))]
    Unknown { name: String, near: Vec<String>, known: Vec<String> },
}

fn advice(near: &[String], known: &[String]) -> String {
    match (near, known) {
        ([], []) => "; there are no tools".to_owned(),
        ([], known) => format!("; the tools are {}", known.join(", ")),
        (near, _) => format!("; did you mean {}?", near.join(" or ")),
    }
}

impl From<ToolSetError> for AskError {
    fn from(error: ToolSetError) -> Self {
        let reason = error.to_string();
        match error {
            ToolSetError::Unknown { name, near, known } => {
                AskError::UnknownTool { name, hint: advice(&near, &known) }
            }
            ToolSetError::Absent { name, why } => AskError::ToolNotAvailable { name, reason: why.to_owned() },
            ToolSetError::Duplicate { name }
            | ToolSetError::Schema { name, .. }
            | ToolSetError::SchemaRefused { name, .. } => AskError::ToolNotAvailable { name, reason },
        }
    }
}

/// A tool and its schema, which is compiled at the first call.
pub(super) struct ToolEntry {
    pub(super) tool: Arc<dyn Tool>,
    origin: ToolOrigin,
    schema: OnceLock<Result<Validator, ToolSetError>>,
}

/// The origin of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolOrigin {
    BuiltIn,
    /// Its schema is passed on unchanged.
    Foreign,
}

impl ToolEntry {
    pub(super) fn schema(&self) -> Result<&Validator, ToolSetError> {
        let schema = self.schema.get_or_init(|| {
            let ToolSpec { name, parameters, .. } = self.spec();
            jsonschema::validator_for(parameters)
                .map_err(|error| ToolSetError::Schema { name: name.clone(), reason: error.to_string() })
        });
        schema.as_ref().map_err(Clone::clone)
    }

    pub(super) fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The description for the model.
    pub(super) fn definition(&self, detail: Detail) -> ToolDefinition {
        let (spec, definition) = (self.spec(), self.spec().definition());
        match (self.origin, detail) {
            (ToolOrigin::BuiltIn, Detail::Brief) => ToolDefinition {
                description: Some(short_description(&spec.description).to_owned()),
                parameters: Some(short_schema(&spec.parameters, self.tool.rare_arguments())),
                ..definition
            },
            (ToolOrigin::BuiltIn, Detail::Full) | (ToolOrigin::Foreign, _) => definition,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Detail {
    /// For the model of an agent, which reads it before every answer.
    #[default]
    Brief,
    Full,
}

/// All tools. Clones share them.
#[derive(Clone, Default)]
pub struct ToolSet {
    pub(super) tools: Vec<Arc<ToolEntry>>,
    /// Names of optional tools, each with its condition.
    conditions: &'static [(&'static str, &'static str)],
    pub(super) allowed_after_untrusted: AllowedAfterUntrusted,
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.specs().map(|spec| &spec.name)).finish()
    }
}

impl ToolSet {
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolSetError> {
        let mut tool_set = ToolSet::default();
        for tool in tools {
            tool_set.insert(tool, ToolOrigin::BuiltIn)?;
        }
        Ok(tool_set)
    }

    /// Explains why a tool is missing, by name and condition.
    pub fn with_conditions(self, conditions: &'static [(&'static str, &'static str)]) -> Self {
        ToolSet { conditions, ..self }
    }

    /// Lets tainted runs use these tools.
    pub fn allowing_after_untrusted(self, allowed_after_untrusted: AllowedAfterUntrusted) -> Self {
        ToolSet { allowed_after_untrusted, ..self }
    }

    /// Adds a tool of an MCP server, after checking its schema.
    pub fn add_foreign(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        let ToolSpec { name, parameters, .. } = tool.spec();
        check_schema(parameters, "it")
            .map_err(|error| ToolSetError::SchemaRefused { name: name.clone(), reason: error.to_string() })?;
        self.insert(tool, ToolOrigin::Foreign)?.schema().map(drop).inspect_err(|_| drop(self.tools.pop()))
    }

    fn insert(&mut self, tool: Arc<dyn Tool>, origin: ToolOrigin) -> Result<Arc<ToolEntry>, ToolSetError> {
        let name = &tool.spec().name;
        if self.find(name).is_some() {
            return Err(ToolSetError::Duplicate { name: name.clone() });
        }
        let entry = Arc::new(ToolEntry { tool, origin, schema: OnceLock::new() });
        self.tools.push(Arc::clone(&entry));
        Ok(entry)
    }

    /// Every tool, in the order of insertion.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|entry| entry.spec())
    }

    /// Missing tools, each with its condition.
    pub fn absent(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.conditions.iter().copied().filter(|(name, _)| self.find(name).is_none())
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.iter().find(|entry| entry.spec().name == name)
    }

    pub(super) fn unknown(&self, name: &str) -> ToolSetError {
        if let Some((_, why)) = self.conditions.iter().find(|(conditional, _)| *conditional == name) {
            return ToolSetError::Absent { name: name.to_owned(), why };
        }
        let known: Vec<String> = self.specs().map(|spec| spec.name.clone()).collect();
        let slips = name.chars().count().div_ceil(3);
        // Longer names are not typing errors, and comparing them takes time.
        let comparable = name.len() <= 64;
        let near = known.iter().filter(|known| {
            comparable && strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()) <= slips
        });
        ToolSetError::Unknown { name: name.to_owned(), near: near.cloned().collect(), known }
    }
}
