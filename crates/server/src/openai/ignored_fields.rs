//! The fields of a request that reach no engine. The answer names them in `x-hob-warning`.

use hob_core::AnswerWarning;
use serde_json::{Map, Value};

/// Names such as `tools[].function.deferred`, without array indices: an index would repeat the name for each element.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct IgnoredFields {
    warnings: Vec<AnswerWarning>,
}

/// How many are named. Callers choose the names, and the head of an answer is small.
const MAX_NAMED: usize = 16;

impl IgnoredFields {
    /// Adds the fields of an object at `path`. A null field has no meaning anywhere.
    pub(crate) fn note_all(&mut self, path: &str, fields: &Map<String, Value>) {
        for (field, value) in fields {
            if !value.is_null() {
                self.note(&format!("{path}.{field}"));
            }
        }
    }

    pub(crate) fn note(&mut self, field: &str) {
        let warning = AnswerWarning::Ignored(field.to_owned());
        if self.warnings.len() < MAX_NAMED && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(crate) fn into_warnings(self) -> Vec<AnswerWarning> {
        self.warnings
    }
}
