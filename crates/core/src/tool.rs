//! The contract of a tool: something a model can have done, with a name, a schema and a reach.

use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use thiserror::Error;

use crate::generate::ToolDefinition;
use crate::message::ToolCall;

/// The tools that search the memory. A caller who may use the first one also gets what the memory has on a question without
/// asking for it.
pub const MEMORY_SEARCH_TOOLS: [&str; 2] = ["memory_search", "retrieval"];

/// How far a tool reaches, from harmless to powerful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// It computes.
    Pure,
    /// It sees private data: memory, files.
    Read,
    /// It changes the world: code, files, messages, schedules, the network.
    Act,
}

impl Reach {
    pub fn as_str(self) -> &'static str {
        match self {
            Reach::Pure => "pure",
            Reach::Read => "read",
            Reach::Act => "act",
        }
    }

    /// Reads the word that configuration and documents use.
    pub fn parse(word: &str) -> Option<Self> {
        [Reach::Pure, Reach::Read, Reach::Act].into_iter().find(|reach| reach.as_str() == word)
    }
}

/// What the caller of a run may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// How far tools may reach.
    pub most: Reach,
    /// Tools that are allowed even though they reach further. A name that is not there allows nothing.
    pub also: Vec<String>,
    /// The caller's own selection, which can only take away; `None` for everything allowed.
    pub only: Option<Vec<String>>,
    /// Tools that are not allowed, whatever the rest says. Looked up when a tool is used, so one that comes later is included.
    pub except: Vec<String>,
    /// Whether the request itself is text from outside, such as a message on a channel. Its run begins as one that has read
    /// such text.
    pub tainted: bool,
}

impl Permit {
    /// Everything that reaches no further than `most`.
    pub fn up_to(most: Reach) -> Self {
        Permit { most, also: Vec::new(), only: None, except: Vec::new(), tainted: false }
    }

    pub fn allows(&self, tool: &ToolSpec) -> bool {
        let reachable = tool.reach <= self.most || self.also.contains(&tool.name);
        reachable
            && self.only.as_ref().is_none_or(|only| only.contains(&tool.name))
            && !self.except.contains(&tool.name)
    }
}

/// What a call does beyond giving an answer. Text from outside must not get to choose calls that do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing that outlasts the run or leaves the machine.
    None,
    /// Its arguments leave the machine.
    Sends,
    /// Something is saved, or changed, that later runs see.
    Persists,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::None => "none",
            Effect::Sends => "sends",
            Effect::Persists => "persists",
        }
    }
}

/// What is known of a tool before it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub reach: Reach,
    pub effect: Effect,
    /// Whether the result holds text that somebody outside may have written. A run that has read it is tainted.
    pub untrusted_output: bool,
    /// How long a call may take; `None` for the usual time.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// A tool without effects and with the usual timeout.
    pub fn new(name: &str, description: &str, reach: Reach, parameters: Value) -> Self {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            reach,
            effect: Effect::None,
            untrusted_output: false,
            timeout: None,
        }
    }

    /// The tool as a model is told of it.
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: Some(self.description.clone()),
            parameters: Some(self.parameters.clone()),
            strict: None,
        }
    }
}

/// The JSON schema of an object with these properties and no others.
pub fn object_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

/// Why a tool could not do it, in words that help the model to do better.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    pub fn new(reason: impl Display) -> Self {
        ToolError(reason.to_string())
    }
}

/// Something that can be done. Dropping the future of a call cancels it.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// The tool that this one is a second name of. Models are not told of both.
    fn alias_of(&self) -> Option<&str> {
        None
    }

    /// Optional arguments that few calls need, so agents do not tell their models of them.
    fn rare_arguments(&self) -> &[&str] {
        &[]
    }

    /// Whether the owner's own words name what this call sends or saves, so that no text from outside can have chosen it. Such a
    /// call runs in a tainted run too.
    fn is_named_by_owner(&self, arguments: &Value, owner_words: &str) -> bool {
        let _ = (arguments, owner_words);
        false
    }

    /// Whether a call asks an engine. A run has few of those.
    fn asks_engine(&self) -> bool {
        false
    }

    /// Does it. The arguments follow the schema already.
    async fn call(&self, arguments: Value) -> Result<String, ToolError>;

    /// Does it for somebody who may use what `permit` says. Tools that have more done later, on the caller's behalf, need to
    /// know that; the others do not care.
    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let _ = permit;
        self.call(arguments).await
    }
}

/// What a tool gave back during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub tool_name: String,
    pub content: String,
    pub success: bool,
}

/// The tools of one run: what its caller may use, and the one way to use it.
#[async_trait]
pub trait ToolRunner: Send + Sync {
    /// The tools as the model is told of them.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// The model has seen every result so far, and the calls that follow are one turn of it. What a call of this turn reads, the
    /// others of the same turn were chosen without.
    fn begin_turn(&self) {}

    /// Runs a call and always has a result: what goes wrong is told to the model.
    async fn execute(&self, call: &ToolCall) -> ToolResult;

    /// Whether the run goes in circles and should end with what it has. Further calls are not run.
    fn stopped(&self) -> bool {
        false
    }
}

/// No tools at all.
pub struct NoTools;

#[async_trait]
impl ToolRunner for NoTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        Vec::new()
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        ToolResult {
            tool_name: call.name.clone(),
            content: format!("there is no tool '{}'", call.name),
            success: false,
        }
    }
}
