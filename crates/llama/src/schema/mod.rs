//! Translates JSON schemas for the grammar engine: which keywords a grammar enforces, which are checked on the finished answer,
//! and which are refused by name. Knows nothing of models, tokens or requests.
//!
//! No keyword is ignored silently, with three exceptions of JSON Schema itself: annotations, unknown keywords, and unknown
//! formats.

mod check;
mod disjoint;
mod error;
mod exact;
mod finite;
mod formats;
mod reader;
mod references;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub(crate) use check::{AnswerCheck, Validator};
use error::MAX_BYTES;
pub(crate) use error::SchemaError;
use exact::has_control_characters;
use reader::{NAMES, Reader};
pub(crate) use references::reference;
use references::{check_reference_chains, renamed};

/// A schema that can be enforced.
#[derive(Debug, PartialEq)]
pub(crate) struct Enforceable {
    /// For the grammar. The first definition is the schema itself; references are numbers of definitions.
    pub(crate) definitions: Vec<Value>,
    /// The keywords that must be checked on the finished answer.
    pub(crate) checked: BTreeSet<&'static str>,
    pub(crate) spelling: TextSpelling,
}

/// How the grammar lets texts and names be spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextSpelling {
    /// As JSON allows, except that the texts of values have `\u` only for control characters.
    Any,
    /// Without `\u`: each text has one spelling, so names that are spelled differently are different. Some control characters cannot be
    /// written.
    Unique,
}

impl Enforceable {
    /// Reads a schema. Recursive up to the limits of `error`; needs a large stack.
    pub(crate) fn read(schema: &Value) -> Result<Self, SchemaError> {
        if is_longer_than(schema, MAX_BYTES) {
            return Err(SchemaError::TooLarge);
        }
        let mut reader = Reader::new(schema);
        let mut definitions = Vec::new();
        while let Some(&target) = reader.targets.get(definitions.len()) {
            definitions.push(reader.read(target, 0)?);
        }
        let Reader { mut checked, has_confusable_names, needs_free_spelling, .. } = reader;
        let mut spelling = TextSpelling::Any;
        if has_confusable_names {
            // An answer that is checked anyway may be spelled freely.
            if checked.is_empty() && !needs_free_spelling && !has_control_characters(schema) {
                spelling = TextSpelling::Unique;
            } else {
                checked.insert(NAMES);
            }
        }
        check_reference_chains(&definitions)?;
        if !finite::is_finite(&definitions) {
            return Err(SchemaError::Endless);
        }
        Ok(Enforceable { definitions, checked, spelling })
    }

    /// The schema of any object, for JSON mode.
    pub(crate) fn any_object() -> Self {
        Enforceable::unchecked(serde_json::json!({ "type": "object" }))
    }

    /// A schema of which the grammar enforces everything.
    pub(crate) fn unchecked(schema: Value) -> Self {
        Enforceable { definitions: vec![schema], checked: BTreeSet::new(), spelling: TextSpelling::Any }
    }

    /// The definitions for `$defs`, with names that begin with `prefix`.
    pub(crate) fn definitions_named(self, prefix: &str) -> Map<String, Value> {
        let numbered = self.definitions.into_iter().enumerate();
        numbered.map(|(at, definition)| (format!("{prefix}{at}"), renamed(definition, prefix))).collect()
    }
}

/// Whether the text of a value exceeds `limit` bytes, without writing it.
fn is_longer_than(value: &Value, limit: usize) -> bool {
    struct Left(usize);
    impl std::io::Write for Left {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(left) => self.0 = left,
                None => return Err(std::io::ErrorKind::FileTooLarge.into()),
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Left(limit), value).is_err()
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
