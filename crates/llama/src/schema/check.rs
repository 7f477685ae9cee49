//! Checks a finished answer for what a grammar cannot enforce.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::budget::can_collect_errors;
use hob_core::{Answer, FinishReason, Generation};
use jsonschema::PatternOptions;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::error::SchemaError;

/// The backtracking limit of a caller's pattern.
const MAX_BACKTRACKING: usize = 100_000;

/// The size limit of a caller's compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Validator {
    compiled: jsonschema::Validator,
    schema: Value,
}

impl Validator {
    /// Recursive; needs a large stack.
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKING)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        jsonschema::options()
            .should_validate_formats(true)
            .with_pattern_options(patterns)
            .build(schema)
            .map(|compiled| Validator { compiled, schema: schema.clone() })
            .map_err(|error| {
                let mut reason = error.to_string();
                reason.truncate(reason.floor_char_boundary(200));
                SchemaError::Unsupported(reason)
            })
    }

    fn violation(&self, text: &str) -> Option<String> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("it is not JSON".to_owned()) };
        if self.compiled.is_valid(&value) {
            return None;
        }
        let error = match can_collect_errors(&self.schema, &value) {
            true => self.compiled.validate(&value).err(),
            false => None,
        };
        let path = error.map(|error| error.schema_path().to_string()).unwrap_or_default();
        let keyword = path.rsplit('/').find(|part| !part.is_empty() && part.parse::<usize>().is_err());
        Some(format!("'{}' is violated", keyword.unwrap_or("schema")))
    }
}

/// The checks of finished answers.
#[derive(Debug, Clone)]
pub(crate) enum AnswerCheck {
    /// Of the whole answer.
    Content(Arc<Validator>),
    /// Of the arguments of calls, by function.
    Calls(Arc<HashMap<String, Validator>>),
}

impl AnswerCheck {
    /// The first violation. Incomplete JSON is not checked.
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
