//! An answer as events, in the order in which they are shown: what was prepared, then either pieces or the whole answer.

use std::error::Error;
use std::fmt;
use std::pin::Pin;

use anyhow::Error as AnyError;
use futures::Stream;
use hob_core::{AskError, EngineError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure;

/// Events until `Done`, `Whole` or an error. Dropping it cancels the work behind it.
pub type AnswerEvents<'a> = Pin<Box<dyn Stream<Item = Result<AnswerEvent, AnswerFailure>> + Send + 'a>>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEvent {
    /// Comes first.
    Prepared {
        /// The passages of the user's documents that the model gets.
        passages: Vec<UsedPassage>,
        /// The most tokens an answer may have; `None` if the engine decides.
        max_tokens: Option<u32>,
    },
    /// The first piece follows.
    Begun(AnswerHead),
    Text(String),
    Reasoning(String),
    /// A step of an agent, as one line.
    Step(String),
    /// Why the answer ends.
    Finished(String),
    /// The pieces are complete.
    Done,
    /// The answer to a question that asked for it as a whole.
    Whole(Box<WholeAnswer>),
}

/// What answers, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerHead {
    pub engine: String,
    pub model: String,
    /// Why this model; `None` if it is the one that was asked for.
    pub reason: Option<String>,
    /// Whether it answers instead of the configured model.
    pub is_fallback: bool,
}

/// A passage from the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsedPassage {
    /// Such as `notes.md:12`.
    pub location: String,
    pub title: String,
    /// All of it, for `--json`.
    pub passage: Value,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeAnswer {
    pub head: AnswerHead,
    pub content: String,
    pub reasoning: Option<String>,
    /// Tokens read and written, if the engine counts them.
    pub usage: Option<(u64, u64)>,
    pub turns: u32,
    /// Tool, result, and whether it succeeded.
    pub tool_results: Vec<(String, String, bool)>,
    pub finish_reason: String,
}

/// Why there is no answer, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerFailure {
    pub message: String,
    /// Whether the conversation is too long for the model.
    pub is_context_overflow: bool,
}

impl AnswerFailure {
    pub fn new(message: impl Into<String>) -> Self {
        AnswerFailure { message: message.into(), is_context_overflow: false }
    }

    /// The failure with its hint. The hint depends on the kind of error, which does not leave this process.
    pub fn of(error: impl Into<AnyError>) -> Self {
        let error: AnyError = error.into();
        let engine = match error.downcast_ref() {
            Some(AskError::Engine(engine)) => Some(engine),
            _ => error.downcast_ref::<EngineError>(),
        };
        AnswerFailure {
            is_context_overflow: engine.is_some_and(EngineError::is_context_overflow),
            message: failure::explain(&error),
        }
    }
}

/// The error. If a conversation with these earlier turns is too long for the model, it suggests a new one.
pub fn explain_overflow(error: AnyError, turns: usize) -> AnyError {
    let is_overflow =
        error.downcast_ref::<AnswerFailure>().is_some_and(|failure| failure.is_context_overflow);
    if is_overflow && turns > 0 {
        error.context("the conversation exceeds the model's context; start a new one without --continue")
    } else {
        error
    }
}

impl fmt::Display for AnswerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for AnswerFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_hint_of_its_error() {
        let error = EngineError::Interrupted { engine: "ollama".into(), reason: "it crashed".into() };
        let failure = AnswerFailure::of(AskError::from(error));
        assert!(failure.message.ends_with("Try again; the log of ollama may show the reason."), "{failure}");
        assert!(!failure.is_context_overflow);
        assert_eq!(failure::explain(&AnyError::from(failure.clone())), failure.message);
    }
}
