//! Entry for the fuzz target of tool arguments.

use std::sync::{Arc, LazyLock};

use hob_core::Tool;
use jsonschema::Validator;
use serde_json::Value;

use super::schema_check::{check, parse};
use crate::builtin::{BuiltInOptions, built_in_tools};

/// Five complaints of 300 characters, with what is said around them.
const LONGEST_COMPLAINT: usize = 2_500;

/// The arguments of a call as a model writes them, for each built-in tool.
pub fn tool_arguments(bytes: &[u8]) {
    static SCHEMAS: LazyLock<Vec<(Validator, Value)>> = LazyLock::new(schemas);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let arguments = match parse(text) {
        Ok(arguments) => arguments,
        Err(complaint) => return check_length(&complaint),
    };
    for (schema, parameters) in SCHEMAS.iter() {
        match check(schema, parameters, &arguments) {
            Ok(()) => assert!(arguments.is_object(), "arguments that are no object are accepted"),
            Err(complaint) => check_length(&complaint),
        }
    }
}

fn check_length(complaint: &str) {
    assert!(complaint.chars().count() <= LONGEST_COMPLAINT, "a complaint is too long: {complaint}");
}

fn schemas() -> Vec<(Validator, Value)> {
    let tools = built_in_tools(BuiltInOptions::default());
    let schema = |tool: &Arc<dyn Tool>| {
        let parameters = &tool.spec().parameters;
        Some((jsonschema::validator_for(parameters).ok()?, parameters.clone()))
    };
    let schemas: Vec<(Validator, Value)> = tools.iter().filter_map(schema).collect();
    assert_eq!(schemas.len(), tools.len(), "a tool has no valid schema");
    schemas
}
