//! The contract of a tool: a function that a model can call, with a name, a schema and a reach.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use thiserror::Error;

use crate::collection::CollectionSet;
use crate::generate::ToolDefinition;
use crate::message::ToolCall;
use crate::time::Zone;

/// The tools that search the memory. A caller who may use the first one also gets what the memory has on a question without
/// asking for it.
pub const MEMORY_SEARCH_TOOLS: [&str; 2] = ["memory_search", "retrieval"];

/// Tools over what belongs to the owner: writing to the memory, the channels, the mailbox, the tasks of everyone, the calendars and other
/// sources. Members never get them; they have their own tasks over the API, and search the collections that their keys name.
pub const OWNER_TOOLS: [&str; 14] = [
    "memory_store",
    "memory_index",
    "channel_send",
    "channel_list",
    "channel_status",
    "mail",
    "list_scheduled_tasks",
    "pause_scheduled_task",
    "resume_scheduled_task",
    "cancel_scheduled_task",
    "calendar",
    "feeds",
    "weather",
    "page_changes",
];

/// How far a tool reaches, from harmless to powerful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// It computes.
    Pure,
    /// It reads private data: memory, files.
    Read,
    /// It has effects: code, files, messages, schedules, the network.
    Act,
}

crate::named_variants! {
    Reach {
        Pure => "pure",
        Read => "read",
        Act => "act",
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
    /// Tools that are never allowed. Checked when a tool is used, so tools that are added later are included.
    pub except: Cow<'static, [Cow<'static, str>]>,
    /// Whether the request itself is text from outside, such as a message on a channel. Its run begins as one that has read
    /// such text.
    pub tainted: bool,
    /// The name of the key that the run is charged to, and whose rights limit it.
    pub key: Option<Arc<str>>,
    /// The rule that gives the key its rights, if the key is an identity from outside. A task runs later without a token, so it
    /// keeps the rule.
    pub rule: Option<Arc<str>>,
    /// The collections that tools may search. Set from the rights of the caller when a run begins, and never stored: a task looks up
    /// its key at each run.
    pub memory: CollectionSet,
    /// The zone in which tools read and show times; `None` for that of this machine. It allows nothing, but a tool knows no more of
    /// its caller than this. Set when the run of a task begins, and never stored.
    pub zone: Option<Zone>,
}

impl Permit {
    /// Everything that reaches no further than `most`.
    pub fn up_to(most: Reach) -> Self {
        Permit {
            most,
            also: Vec::new(),
            only: None,
            except: Cow::Borrowed(&[]),
            tainted: false,
            key: None,
            rule: None,
            memory: CollectionSet::All,
            zone: None,
        }
    }

    pub fn allows(&self, tool: &ToolSpec) -> bool {
        let reachable = tool.reach <= self.most || self.also.contains(&tool.name);
        reachable
            && self.only.as_ref().is_none_or(|only| only.contains(&tool.name))
            && !self.except.iter().any(|name| *name == tool.name)
    }

    /// The same, and never these tools.
    pub(crate) fn without(mut self, tools: &'static [Cow<'static, str>]) -> Self {
        match self.except.is_empty() {
            // The usual case, which copies nothing.
            true => self.except = Cow::Borrowed(tools),
            false => self.except.to_mut().extend_from_slice(tools),
        }
        self
    }
}

/// The effect of a call besides its result. Text from outside must not choose calls with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing is saved, and nothing leaves the machine.
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

/// The description of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub reach: Reach,
    pub effect: Effect,
    /// Whether the result may contain text that others wrote. A run that has read it is tainted.
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

    /// The description of the tool for a model.
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

/// Why a call failed, in words that help the model to correct it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    pub fn new(reason: impl Display) -> Self {
        ToolError(reason.to_string())
    }
}

/// A function that a model can call. Dropping the future of a call cancels it.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// The tool that this one is a second name of. Models get only one of them.
    fn alias_of(&self) -> Option<&str> {
        None
    }

    /// Optional arguments that few calls need. Agents omit them from the schema for the model.
    fn rare_arguments(&self) -> &[&str] {
        &[]
    }

    /// Whether the owner's own text names what this call sends or saves, so that no text from outside can have chosen it. Such a
    /// call is allowed in a tainted run too.
    fn is_named_by_owner(&self, arguments: &Value, owner_words: &str) -> bool {
        let _ = (arguments, owner_words);
        false
    }

    /// Whether a call asks an engine. The number of such calls in a run is limited.
    fn asks_engine(&self) -> bool {
        false
    }

    /// Runs the call. The arguments have been checked against the schema.
    async fn call(&self, arguments: Value) -> Result<String, ToolError>;

    /// Runs the call for a caller with the rights of `permit`. Only tools that act later on the caller's behalf need them.
    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let _ = permit;
        self.call(arguments).await
    }
}

/// How a line of a result begins that names a source which could not be read, with the reason. The other sources are in the result.
pub const NOT_READ: &str = "Not read: ";

/// How the report of a watched page begins that is as it was.
pub const NO_CHANGE: &str = "No change since ";

/// The tools whose results have such lines. In the result of another tool, such a line may be text from outside.
pub const TOOLS_OF_SEVERAL_SOURCES: [&str; 3] = ["calendar", "feeds", "page_changes"];

/// The result of a call during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub tool_name: String,
    pub content: String,
    pub success: bool,
}

/// The tools that the caller of a run may use. Runs all calls.
#[async_trait]
pub trait ToolRunner: Send + Sync {
    /// The descriptions of the tools for the model.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// A turn begins: the model has seen every result so far. It chose the calls of this turn before it saw any of their results.
    fn begin_turn(&self) {}

    /// Runs a call. Always has a result: the model gets errors as text.
    async fn execute(&self, call: &ToolCall) -> ToolResult;

    /// Whether the model repeats the same calls, so that the run should end. Further calls are not run.
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
