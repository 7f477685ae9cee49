//! The contract between those who ask and what answers: a request, its caller, the answer or the reason why there is none.
//!
//! Knows no engine, agent or tool in particular, and no way to reach the caller.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use thiserror::Error;

use crate::agent::TextSink;
use crate::call_tally::CallTally;
use crate::caller::CallerRole;
use crate::collection::CollectionSet;
use crate::engine_error::EngineError;
use crate::generate::{GenerateRequest, Generation};
use crate::key::{CallerRights, KeyGrant};
use crate::limit::LimitReached;
use crate::message::ToolCall;
use crate::model::{AGENT_MODEL, NoSuitableModel};
use crate::model_reason::ModelReason;
use crate::tool::Permit;
use crate::tool::ToolResult;
use crate::trace::TraceParent;

/// Answers requests. Dropping the future cancels the work behind it.
#[async_trait]
pub trait Ask: Send + Sync {
    /// The whole answer.
    async fn ask(&self, request: GenerateRequest, caller: &Caller) -> Result<Answered, AskError>;

    /// The whole answer. `listener` gets its text while it is written, if that is possible.
    async fn ask_live(
        &self,
        request: GenerateRequest,
        caller: &Caller,
        _listener: &dyn TextSink,
    ) -> Result<Answered, AskError> {
        self.ask(request, caller).await
    }

    /// Makes the [`FirstCalls`] of the caller without asking the question of `request`, and returns one result for each. A call that
    /// fails has a result that says why.
    async fn make_first_calls(
        &self,
        _request: &GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
        let calls = caller.first_calls.iter().flat_map(|first| &first.calls);
        let failed = |call: &ToolCall| ToolResult {
            tool_name: call.name.clone(),
            content: "tools cannot be called here".to_owned(),
            success: false,
        };
        Ok(calls.map(failed).collect())
    }

    /// The text of a document, which may be cut. `name` says of what kind it is.
    async fn document_text(&self, name: &str, _bytes: Vec<u8>) -> Result<String, AskError> {
        Err(not_available(name, "documents cannot be read here"))
    }

    /// The words of a recording.
    async fn transcribe(&self, recording: SpeechRecording, _caller: &Caller) -> Result<String, AskError> {
        Err(not_available(&recording.name, "speech cannot be transcribed here"))
    }
}

/// Recorded speech.
#[derive(Clone, PartialEq, Eq)]
pub struct SpeechRecording {
    pub name: String,
    pub media_type: String,
    pub bytes: Vec<u8>,
    /// The model that transcribes it; `None` lets Hob choose one.
    pub model: Option<String>,
}

fn not_available(name: &str, reason: &str) -> AskError {
    AskError::Attachment { param: name.to_owned(), reason: reason.to_owned() }
}

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestSource {
    Server,
    Ask,
    Channel,
    Scheduler,
    Bench,
}

crate::named_variants! {
    RequestSource {
        Server => "server",
        Ask => "ask",
        Channel => "channel",
        Scheduler => "scheduler",
        Bench => "bench",
    }
}

/// Which agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AgentPreference {
    /// The one that is configured.
    #[default]
    Configured,
    Named(String),
    /// The engine itself.
    None,
}

impl AgentPreference {
    /// What the field `agent` of a request means.
    pub fn of_field(agent: Option<String>) -> Self {
        match agent {
            None => AgentPreference::Configured,
            Some(name) if matches!(name.as_str(), "" | "none") => AgentPreference::None,
            Some(name) => AgentPreference::Named(name),
        }
    }
}

/// Whether the model gets passages of the memory with the question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MemoryUse {
    /// From an agent, if the configuration says so and the caller may read the memory.
    #[default]
    Allowed,
    /// Always, of these collections. The caller gets them with the answer.
    Wanted(CollectionSet),
    /// Never.
    Unwanted,
}

/// A passage that the model got with the question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerSource {
    /// The file, or `note:...`.
    pub document: String,
    /// The text as the model got it.
    pub passage: String,
    /// More is better.
    pub score: f64,
}

/// Calls of tools that are made before the model is asked. It gets their results with the question, so it need not call tools itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstCalls {
    pub calls: Vec<ToolCall>,
    /// What these calls may use. An agent has the permit of the caller.
    pub permit: Permit,
    /// Their results, one for each, if the calls were made before. They are not made again.
    pub results: Option<Vec<ToolResult>>,
}

/// Who asks, and on what terms.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Names this request in events and records.
    pub run: Arc<str>,
    pub source: RequestSource,
    pub role: CallerRole,
    /// What an agent may use on this caller's behalf, and the name of the key that it is charged to.
    pub permit: Permit,
    /// The rights of the key that `permit` names. Set by [`Caller::under_key`], which also applies them, and checked again where a request
    /// is admitted.
    pub key: Option<Arc<KeyGrant>>,
    /// Whom the request is for, in the words of the client (the field `user`), for the records.
    pub end_user: Option<Arc<str>>,
    /// Counts what the request uses, for its log line.
    pub tally: Option<Arc<CallTally>>,
    pub agent: AgentPreference,
    pub memory: MemoryUse,
    /// What is called before the model is asked; `None` for nothing.
    pub first_calls: Option<FirstCalls>,
    /// The trace this request is a part of, where the caller named one.
    pub trace_parent: Option<TraceParent>,
    /// What the caller, the log and the trace call this request, where it came over HTTP.
    pub request_id: Option<Arc<str>>,
    /// The path of the API that it came over.
    pub route: Option<&'static str>,
    /// How long it waited for one of the server's slots.
    pub queued: Option<Duration>,
}

impl Caller {
    /// A caller who may use everything: the person at this machine.
    pub fn trusted(source: RequestSource, run: impl Into<Arc<str>>) -> Self {
        Caller {
            run: run.into(),
            source,
            role: CallerRole::Owner,
            permit: Permit::up_to(CallerRole::Owner.reach()),
            key: None,
            end_user: None,
            tally: None,
            agent: AgentPreference::Configured,
            memory: MemoryUse::Allowed,
            first_calls: None,
            trace_parent: None,
            request_id: None,
            route: None,
            queued: None,
        }
    }

    /// The caller with the rights of a key, and no others.
    pub fn under_key(self, key: Arc<KeyGrant>) -> Self {
        let role = match self.role {
            role if key.role == CallerRole::Owner => role,
            // The key pays, but a message of a sender is no request of a member.
            CallerRole::ChannelSender => CallerRole::ChannelSender,
            CallerRole::Owner | CallerRole::Member | CallerRole::Stranger => CallerRole::Member,
        };
        let narrowed = |permit: Permit| key.narrow(permit).without(key.withheld_tools());
        let first_calls =
            self.first_calls.map(|first| FirstCalls { permit: narrowed(first.permit), ..first });
        Caller { role, permit: narrowed(self.permit), first_calls, key: Some(key), ..self }
    }

    /// Whether what this caller uses is counted.
    pub fn has_limits(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.spending.is_some())
    }

    /// What this caller may use.
    pub fn rights(&self) -> CallerRights {
        CallerRights { role: self.role, key: self.key.clone() }
    }
}

/// A whole answer, and how it came to be.
#[derive(Debug)]
pub struct Answered {
    /// The key of the engine that answered.
    pub engine: String,
    /// Its usage is the sum over all turns.
    pub generation: Generation,
    pub turns: u32,
    /// Those of [`FirstCalls`] come first.
    pub tool_results: Vec<ToolResult>,
    /// Why this model; `None` when it is the one that was asked for.
    pub reason: Option<ModelReason>,
    /// The passages of the memory that the model got.
    pub sources: Vec<AnswerSource>,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// The caller selected a tool that does not exist.
    #[error("there is no tool '{name}'{hint}")]
    UnknownTool {
        name: String,
        /// The closest name, or the existing ones, as the end of a sentence.
        hint: String,
    },

    /// The caller selected a tool that exists under a condition only.
    #[error("the tool '{name}' is not available: {reason}")]
    ToolNotAvailable { name: String, reason: String },

    #[error("there is no agent '{name}'; there are {}", known.join(", "))]
    UnknownAgent { name: String, known: Vec<String> },

    /// The caller asked for the configured agent, and there is none.
    #[error(
        "'{AGENT_MODEL}' is answered by the configured agent, and none is configured. Set [server] agent, or name a model."
    )]
    NoAgent,

    /// The caller left the choice of a model to Hob, and no model can answer.
    #[error(transparent)]
    NoModel(#[from] NoSuitableModel),

    /// `[models.aliases]` maps the requested name to a model that no engine has.
    #[error("{mapping}, which no engine has. {remedy}")]
    NoAliasTarget {
        /// The alias and its model, as a sentence without its end.
        mapping: String,
        remedy: String,
    },

    /// Only a cloud provider could answer, and this caller may not spend the owner's money there.
    #[error("'{model}' is answered by a cloud provider, and only the owner of this server may use that")]
    CloudNotAllowed { model: String },

    /// The key of this caller does not allow the model.
    #[error(
        "the key '{key}' may not use the model '{model}'. GET /v1/models lists the models that it may use"
    )]
    ModelNotAllowed { key: Arc<str>, model: String },

    /// The key of this caller does not allow the engine that has the model.
    #[error(
        "'{model}' is answered by the engine {engine}, which the key '{key}' may not use. GET /v1/models lists the models that it may use"
    )]
    EngineNotAllowed { key: Arc<str>, engine: String, model: String },

    /// The key of a request, or of the task or channel that makes it, is not valid.
    #[error(
        "the key '{name}' is not valid: it does not exist, or is disabled, revoked or expired. 'hob key list' shows the keys"
    )]
    KeyNotValid { name: Arc<str> },

    /// The key of this caller may not use more now.
    #[error(transparent)]
    Limit(#[from] LimitReached),

    /// An image, or other content of a message, that is not passed on.
    #[error("{reason}")]
    Attachment {
        /// Its place in the request.
        param: String,
        reason: String,
    },
}
