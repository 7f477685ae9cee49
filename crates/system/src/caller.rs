//! Who asks, and on what terms.

use std::sync::Arc;

use hob_agents::ToolBoxError;
use hob_core::Permit;
use hob_core::routing::NoChoice;
use hob_core::{CallerRole, EngineError, Source, TraceParent};
use thiserror::Error;

/// Which agent is to answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AgentWish {
    /// The one the house is set up with.
    #[default]
    Configured,
    Named(String),
    /// The engine itself.
    None,
}

/// Whether a question is answered with what the memory has on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    /// Where the caller may know it.
    #[default]
    Allowed,
    /// Not even then.
    Unwanted,
}

/// One who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Names this request in events and records.
    pub run: Arc<str>,
    pub source: Source,
    pub role: CallerRole,
    /// What an agent may use on this caller's behalf.
    pub permit: Permit,
    pub agent: AgentWish,
    pub recall: Recall,
    /// The trace this request is a part of, where the caller told.
    pub trace_parent: Option<TraceParent>,
    /// What the caller, the log and the trace call this request, where it came over HTTP.
    pub request_id: Option<Arc<str>>,
}

impl Caller {
    /// Somebody who may use everything: the person at this machine.
    pub fn trusted(source: Source, run: impl Into<Arc<str>>) -> Self {
        Caller {
            run: run.into(),
            source,
            role: CallerRole::Owner,
            permit: Permit::up_to(CallerRole::Owner.reach()),
            agent: AgentWish::Configured,
            recall: Recall::Allowed,
            trace_parent: None,
            request_id: None,
        }
    }
}

/// A name for a run that no other has: `ask-3kD9…`.
pub fn run_id(of: &str) -> String {
    let mut id = format!("{of}-");
    id.extend(std::iter::repeat_with(fastrand::alphanumeric).take(24));
    id
}

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// A tool was selected that is not there.
    #[error(transparent)]
    Tools(#[from] ToolBoxError),

    #[error("there is no agent '{name}'; there are {}", hob_agents::AGENTS.join(", "))]
    UnknownAgent { name: String },

    /// The choice of a model was left to us, and there is none.
    #[error(transparent)]
    NoChoice(#[from] NoChoice),

    /// Only a cloud provider could answer, and this caller may not spend the owner's money there.
    #[error("'{model}' is answered by a cloud provider, and only the owner of this server may use that")]
    CloudNotAllowed { model: String },

    /// An image, or other content of a message, that is not passed on.
    #[error("{reason}")]
    Attachment {
        /// Its place in the request.
        param: String,
        reason: String,
    },
}
