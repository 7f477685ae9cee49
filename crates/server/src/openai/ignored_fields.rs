//! Fields of a request that no engine will ever see. Their names go back with the answer, so that nothing is dropped in silence.

use hob_core::Warning;
use serde_json::{Map, Value};

/// Their names, as `tools[].function.deferred`: the index of an array would only repeat one name for each element.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct IgnoredFields {
    warnings: Vec<Warning>,
}

/// So many are named. What a caller calls its fields is up to the caller, and an answer's head has no room for everything.
const MOST_NAMED: usize = 16;

impl IgnoredFields {
    /// Notes the fields of an object at `path` that have no meaning here. Null means nothing in any field.
    pub(crate) fn note_all(&mut self, path: &str, fields: &Map<String, Value>) {
        for (field, value) in fields {
            if !value.is_null() {
                self.note(&format!("{path}.{field}"));
            }
        }
    }

    pub(crate) fn note(&mut self, field: &str) {
        let warning = Warning::Ignored(field.to_owned());
        if self.warnings.len() < MOST_NAMED && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(crate) fn into_warnings(self) -> Vec<Warning> {
        self.warnings
    }
}
