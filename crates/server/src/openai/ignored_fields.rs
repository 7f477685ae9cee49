//! The fields of a request that reach no engine. The answer names them in `x-hob-warning`.

use std::collections::HashSet;

use hob_core::AnswerWarning;
use serde_json::{Map, Value};

/// Names such as `tools[].function.deferred`, without array indices: an index would repeat the name for each element.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct IgnoredFields {
    warnings: Vec<AnswerWarning>,
    /// Those that are only counted.
    more: HashSet<String>,
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
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() < MAX_NAMED {
            self.warnings.push(warning);
        } else {
            self.more.insert(field.to_owned());
        }
    }

    pub(crate) fn into_warnings(mut self) -> Vec<AnswerWarning> {
        if !self.more.is_empty() {
            self.warnings.push(AnswerWarning::Ignored(format!("{} more", self.more.len())));
        }
        self.warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_too_many_to_name_are_counted_once_each() {
        let mut ignored = IgnoredFields::default();
        for _ in 0..2 {
            (0..MAX_NAMED + 2).for_each(|number| ignored.note(&format!("f{number}")));
        }
        let mut warnings = ignored.into_warnings();
        assert_eq!(warnings.pop(), Some(AnswerWarning::Ignored("2 more".to_owned())));
        assert_eq!(warnings.len(), MAX_NAMED);
    }
}
