//! How engines fail.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::context_overflow::ContextOverflow;
use crate::limit::LimitReached;

/// How an engine fails. Every engine maps its errors to one of these.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There was no connection, so nothing was sent.
    #[error("cannot reach {engine} at {address}: {reason}")]
    Unreachable { engine: String, address: String, reason: UnreachableReason },

    #[error("{engine} did not answer within {} s", after.as_secs_f32())]
    Timeout { engine: String, after: Duration },

    /// The engine answered with an error of its own.
    #[error("{}{message}", answered(engine, *status))]
    Refused {
        engine: String,
        status: u16,
        message: String,
        /// The engine's own code of the error, such as `context_length_exceeded`, if it sends one.
        code: Option<String>,
        /// The field that the engine rejects, if it names one.
        param: Option<String>,
        /// Seconds until the engine accepts requests again.
        retry_after: Option<u64>,
    },

    #[error("{engine} has no model '{model}'{}", known(available))]
    ModelNotFound { engine: String, model: String, available: Vec<String> },

    /// The caller asked for something this engine cannot do.
    #[error("{engine} does not support '{field}'{}", hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Unsupported { engine: String, field: String, hint: Option<String> },

    /// The engine is not set up, such as a provider without a key.
    #[error("{engine} is not set up: {reason}")]
    NotConfigured { engine: String, reason: String },

    /// The engine's answer cannot be read.
    #[error("{engine} gave an answer that cannot be read: {reason}")]
    Malformed { engine: String, reason: String },

    /// The connection broke after the question went out, before or in the middle of the answer, or the engine reported an
    /// error in its middle.
    #[error("{engine} broke off its answer: {reason}")]
    Interrupted { engine: String, reason: String },

    /// The key of the caller may not use more now, so the engine was not asked.
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

/// Why there was no connection to an engine.
#[derive(Debug, Clone)]
pub enum UnreachableReason {
    /// The engine runs, and its certificate was not accepted.
    BadCertificate(String),
    NoConnection(String),
}

impl fmt::Display for UnreachableReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (UnreachableReason::BadCertificate(text) | UnreachableReason::NoConnection(text)) = self;
        formatter.write_str(text)
    }
}

impl<T: Into<String>> From<T> for UnreachableReason {
    fn from(text: T) -> Self {
        UnreachableReason::NoConnection(text.into())
    }
}

impl EngineError {
    /// The engine's numbers if the conversation is too long for its model. Every engine words this error differently.
    pub fn context_overflow(&self) -> Option<ContextOverflow> {
        let EngineError::Refused { status, message, code, .. } = self else { return None };
        ContextOverflow::read(*status, code.as_deref(), message)
    }

    /// Whether the conversation is too long for the model.
    pub fn is_context_overflow(&self) -> bool {
        self.context_overflow().is_some()
    }
}

/// Who refused. The messages of the embedded engine are Hob's own.
fn answered(engine: &str, status: u16) -> String {
    match engine {
        "embedded" => String::new(),
        _ => format!("{engine} answered {status}: "),
    }
}

fn known(available: &[String]) -> String {
    match available {
        [] => String::new(),
        names => format!("; it has {}", names.join(", ")),
    }
}
