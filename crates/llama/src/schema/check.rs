//! The check of a finished answer, for what a grammar cannot hold.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::{Answer, FinishReason, Generation};
use jsonschema::PatternOptions;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::SchemaError;

/// Steps back that a pattern of the caller may take at one string.
const MAX_BACKTRACKING: usize = 100_000;

/// Bytes that a compiled pattern of the caller may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A caller's schema, ready to check answers.
#[derive(Debug)]
pub(crate) struct Validator(jsonschema::Validator);

impl Validator {
    /// Recursive like the schema; for a thread with a large stack.
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKING)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        jsonschema::options()
            .should_validate_formats(true)
            .with_pattern_options(patterns)
            .build(schema)
            .map(Validator)
            .map_err(|error| {
                let mut reason = error.to_string();
                reason.truncate(reason.floor_char_boundary(200));
                SchemaError::Unsupported(reason)
            })
    }

    /// What is wrong with a text, if anything.
    fn violation(&self, text: &str) -> Option<String> {
        match serde_json::from_str(text) {
            Ok(value) => self.0.validate(&value).err().map(|error| {
                let path = error.schema_path().to_string();
                let keyword = path.rsplit('/').find(|part| part.parse::<usize>().is_err());
                format!("'{}' does not hold", keyword.unwrap_or("schema"))
            }),
            Err(_) => Some("it is no JSON".to_owned()),
        }
    }
}

/// What the answers of a request are checked for once they are finished.
#[derive(Debug, Clone)]
pub(crate) enum AnswerCheck {
    /// The whole answer.
    Content(Arc<Validator>),
    /// The arguments of calls, by the name of the function.
    Calls(Arc<HashMap<String, Validator>>),
}

impl AnswerCheck {
    /// What is wrong with the answers, if anything. JSON that was cut short is not checked.
    pub(crate) fn violation(&self, generation: &Generation) -> Option<String> {
        generation.answers().find_map(|answer| self.wrong(answer))
    }

    fn wrong(&self, answer: &Answer) -> Option<String> {
        let is_cut = |text: &str| {
            answer.finish_reason == FinishReason::Length && serde_json::from_str::<IgnoredAny>(text).is_err()
        };
        match self {
            AnswerCheck::Content(_) if is_cut(&answer.content) => None,
            AnswerCheck::Content(validator) => validator.violation(&answer.content),
            AnswerCheck::Calls(validators) => {
                let mut whole = answer.tool_calls.iter().filter(|call| !is_cut(&call.arguments));
                whole.find_map(|call| {
                    let violation = validators.get(&call.name)?.violation(&call.arguments)?;
                    Some(format!("{violation} in the arguments of '{}'", call.name))
                })
            }
        }
    }
}
