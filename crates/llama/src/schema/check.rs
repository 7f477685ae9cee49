//! Checks a finished answer for what a grammar cannot enforce.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use hob_core::request_budget::can_collect_errors;
use hob_core::{Answer, FinishReason, Generation};
use jsonschema::PatternOptions;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::SchemaError;
use super::reader::NAMES;

/// The backtracking limit of a caller's pattern.
const MAX_BACKTRACKING: usize = 100_000;

/// The size limit of a caller's compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Validator {
    compiled: jsonschema::Validator,
    schema: Value,
    /// Whether no object may have a name twice. The validator sees only the last member of a name.
    needs_unique_names: bool,
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
            .map(|compiled| Validator { compiled, schema: schema.clone(), needs_unique_names: false })
            .map_err(|error| {
                let mut reason = error.to_string();
                reason.truncate(reason.floor_char_boundary(200));
                SchemaError::Unsupported(reason)
            })
    }

    /// The same for a schema of which these keywords are checked. Recursive; needs a large stack.
    pub(crate) fn of_checked(schema: &Value, checked: &BTreeSet<&'static str>) -> Result<Self, SchemaError> {
        Ok(Validator { needs_unique_names: checked.contains(NAMES), ..Self::of(schema)? })
    }

    pub(crate) fn violation(&self, text: &str) -> Option<String> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("it is not JSON".to_owned()) };
        if self.needs_unique_names && serde_json::from_str::<UniqueNames>(text).is_err() {
            return Some("an object has a name twice".to_owned());
        }
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
    /// Of an answer that is either.
    Either(Arc<Validator>, Arc<HashMap<String, Validator>>),
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
        let content = |validator: &Validator| {
            // An answer that calls has no other content.
            let is_checked = answer.tool_calls.is_empty() && !is_cut(&answer.content);
            if is_checked { validator.violation(&answer.content) } else { None }
        };
        let calls = |validators: &HashMap<String, Validator>| {
            let mut whole = answer.tool_calls.iter().filter(|call| !is_cut(&call.arguments));
            whole.find_map(|call| {
                let violation = validators.get(&call.name)?.violation(&call.arguments)?;
                Some(format!("{violation} in the arguments of '{}'", call.name))
            })
        };
        match self {
            AnswerCheck::Content(validator) => content(validator),
            AnswerCheck::Calls(validators) => calls(validators),
            AnswerCheck::Either(validator, validators) => content(validator).or_else(|| calls(validators)),
        }
    }
}

/// Any JSON whose objects have each name once.
struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueNames)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<UniqueNames>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a name occurs twice"));
            }
            members.next_value::<UniqueNames>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Collector, Delta, ToolCallDelta};
    use serde_json::json;

    use super::*;

    fn finished(delta: Delta, reason: FinishReason) -> Generation {
        let mut collector = Collector::default();
        collector.push(delta);
        collector.push(Delta::Finish { choice: 0, reason });
        collector.finish("model").expect("finished")
    }

    #[test]
    fn an_answer_is_checked_as_the_text_or_the_call_that_it_is() {
        let text = |text: &str| finished(Delta::text(text), FinishReason::Stop);
        let call = |arguments: &str| {
            let call = ToolCallDelta {
                id: Some("1".into()),
                name: Some("f".into()),
                arguments: arguments.into(),
                ..ToolCallDelta::default()
            };
            finished(Delta::ToolCall(call), FinishReason::ToolCalls)
        };
        let content = Arc::new(Validator::of(&json!({"type": "integer"})).expect("a schema"));
        let arguments = Validator::of(&json!({"required": ["a"]})).expect("a schema");
        let calls = Arc::new(HashMap::from([("f".to_owned(), arguments)]));
        let either = AnswerCheck::Either(Arc::clone(&content), calls);
        for (generation, is_right) in
            [(text("1"), true), (text("\"x\""), false), (call("{\"a\":1}"), true), (call("{}"), false)]
        {
            assert_eq!(either.violation(&generation).is_none(), is_right, "{generation:?}");
        }
        assert_eq!(AnswerCheck::Content(content).violation(&call("{}")), None);
    }
}
