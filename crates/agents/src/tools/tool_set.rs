//! All tools by name. `tool_runner` runs the calls.

use std::fmt;
use std::sync::{Arc, OnceLock};

use hob_core::{AskError, Permit, RunEvents, Tool, ToolDefinition, ToolSpec};
use jsonschema::Validator;
use thiserror::Error;

use super::short_schema::{short_description, short_schema};
use super::taint::AllowedAfterUntrusted;
use super::tool_runner::RunTools;

/// Why a tool cannot be put in or picked out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolBoxError {
    #[error("there are two tools of the name '{name}'; rename one of them")]
    Duplicate { name: String },

    #[error("the schema of the tool '{name}' is no JSON Schema: {reason}")]
    Schema { name: String, reason: String },

    /// It would be there under a condition.
    #[error("the tool '{name}' is not there: {why}")]
    Absent { name: String, why: &'static str },

    #[error("there is no tool '{name}'{}", advice(near, known))]
    Unknown {
        name: String,
        /// The names that were probably meant.
        near: Vec<String>,
        known: Vec<String>,
    },
}

fn advice(near: &[String], known: &[String]) -> String {
    match (near, known) {
        ([], []) => "; there are none at all".to_owned(),
        ([], known) => format!("; the tools are {}", known.join(", ")),
        (near, _) => format!("; did you mean {}?", near.join(" or ")),
    }
}

impl From<ToolBoxError> for AskError {
    fn from(error: ToolBoxError) -> Self {
        let reason = error.to_string();
        match error {
            ToolBoxError::Unknown { name, near, known } => {
                AskError::UnknownTool { name, hint: advice(&near, &known) }
            }
            ToolBoxError::Absent { name, why } => AskError::ToolNotAvailable { name, reason: why.to_owned() },
            ToolBoxError::Duplicate { name } | ToolBoxError::Schema { name, .. } => {
                AskError::ToolNotAvailable { name, reason }
            }
        }
    }
}

/// A tool, and its schema once that was made ready for checking: work and memory that only a call is worth.
pub(super) struct Held {
    pub(super) tool: Arc<dyn Tool>,
    origin: ToolOrigin,
    schema: OnceLock<Result<Validator, ToolBoxError>>,
}

/// Whose a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolOrigin {
    BuiltIn,
    /// Its schema is passed on as it came.
    Foreign,
}

impl Held {
    pub(super) fn schema(&self) -> Result<&Validator, ToolBoxError> {
        let schema = self.schema.get_or_init(|| {
            let ToolSpec { name, parameters, .. } = self.spec();
            jsonschema::validator_for(parameters)
                .map_err(|error| ToolBoxError::Schema { name: name.clone(), reason: error.to_string() })
        });
        schema.as_ref().map_err(Clone::clone)
    }

    pub(super) fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The tool as it is told of.
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

/// How much is told of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Detail {
    /// For the model of an agent, which reads it before every answer.
    #[default]
    Brief,
    Full,
}

/// All tools there are. Clones share them.
#[derive(Clone, Default)]
pub struct ToolBox {
    tools: Vec<Arc<Held>>,
    /// Names of tools that are not always there, and what brings them.
    conditions: &'static [(&'static str, &'static str)],
    allowed_after_untrusted: AllowedAfterUntrusted,
}

impl fmt::Debug for ToolBox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.specs().map(|spec| &spec.name)).finish()
    }
}

impl ToolBox {
    /// The tools of the house, whose schemas are taken on trust until a call.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolBoxError> {
        let mut tool_box = ToolBox::default();
        for tool in tools {
            tool_box.hold(tool, ToolOrigin::BuiltIn)?;
        }
        Ok(tool_box)
    }

    /// Lets it say of a tool that is not in it why that is so. `conditions` are names, each with what brings the tool.
    pub fn with_conditions(self, conditions: &'static [(&'static str, &'static str)]) -> Self {
        ToolBox { conditions, ..self }
    }

    /// Lets runs that have read text from outside send or save something by these tools.
    pub fn allowing_after_untrusted(self, allowed_after_untrusted: AllowedAfterUntrusted) -> Self {
        ToolBox { allowed_after_untrusted, ..self }
    }

    /// Puts a stranger's tool in, whose schema is looked at first. On an error the box is as it was.
    pub fn add_foreign(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolBoxError> {
        self.hold(tool, ToolOrigin::Foreign)?.schema().map(drop).inspect_err(|_| drop(self.tools.pop()))
    }

    fn hold(&mut self, tool: Arc<dyn Tool>, origin: ToolOrigin) -> Result<Arc<Held>, ToolBoxError> {
        let name = &tool.spec().name;
        if self.find(name).is_some() {
            return Err(ToolBoxError::Duplicate { name: name.clone() });
        }
        let held = Arc::new(Held { tool, origin, schema: OnceLock::new() });
        self.tools.push(Arc::clone(&held));
        Ok(held)
    }

    /// Every tool, in the order they were put in.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|held| held.spec())
    }

    /// Tools that are not in it, each with what would bring it.
    pub fn absent(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.conditions.iter().copied().filter(|(name, _)| self.find(name).is_none())
    }

    /// The tools as one run sees them. The run's calls are counted, so every run needs its own.
    pub fn for_run(&self, permit: Permit, events: RunEvents) -> Result<RunTools, ToolBoxError> {
        let unknown = permit.only.iter().flatten().find(|name| self.find(name).is_none());
        match unknown {
            Some(name) => Err(self.unknown(name)),
            None => {
                let allowed = self.allowed_after_untrusted.clone();
                Ok(RunTools::new(self.tools.clone(), permit, events, allowed))
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<Held>> {
        self.tools.iter().find(|held| held.spec().name == name)
    }

    fn unknown(&self, name: &str) -> ToolBoxError {
        if let Some((_, why)) = self.conditions.iter().find(|(conditional, _)| *conditional == name) {
            return ToolBoxError::Absent { name: name.to_owned(), why };
        }
        let known: Vec<String> = self.specs().map(|spec| spec.name.clone()).collect();
        let slips = name.chars().count().div_ceil(3);
        // Longer names are nobody's typing slip, and comparing them would take time.
        let comparable = name.len() <= 64;
        let near = known.iter().filter(|known| {
            comparable && strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()) <= slips
        });
        ToolBoxError::Unknown { name: name.to_owned(), near: near.cloned().collect(), known }
    }
}
