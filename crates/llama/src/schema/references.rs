//! References between the definitions of a schema.

use serde_json::Value;

use super::error::{MAX_REFERENCE_CHAIN, SchemaError};

/// A reference to a definition of [`Enforceable::definitions_named`].
pub(crate) fn reference(prefix: &str, number: usize) -> String {
    format!("#/$defs/{prefix}{number}")
}

/// Adds `prefix` to every reference.
pub(super) fn renamed(mut schema: Value, prefix: &str) -> Value {
    fn rename(schema: &mut Value, prefix: &str) {
        let Value::Object(fields) = schema else { return };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("$ref", Value::String(target)) => {
                    if let Some(number) = target.strip_prefix("#/$defs/") {
                        *target = format!("#/$defs/{prefix}{number}");
                    }
                }
                ("properties" | "patternProperties", Value::Object(named)) => {
                    named.values_mut().for_each(|schema| rename(schema, prefix));
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                    list.iter_mut().for_each(|schema| rename(schema, prefix));
                }
                ("items" | "additionalProperties", schema) => rename(schema, prefix),
                _ => {}
            }
        }
    }
    if !prefix.is_empty() {
        rename(&mut schema, prefix);
    }
    schema
}

/// The definition of a reference.
pub(super) fn number_of(reference: &Value) -> Option<usize> {
    reference.as_str()?.strip_prefix("#/$defs/")?.parse().ok()
}

/// The compiler follows chains of references recursively.
pub(super) fn check_reference_chains(definitions: &[Value]) -> Result<(), SchemaError> {
    let next = |at: usize| definitions.get(at).and_then(|definition| number_of(definition.get("$ref")?));
    for start in 0..definitions.len() {
        let mut at = start;
        let mut length = 0;
        while let Some(to) = next(at) {
            length += 1;
            if to == start || length > definitions.len() {
                break;
            }
            if length > MAX_REFERENCE_CHAIN {
                return Err(SchemaError::ReferenceChain);
            }
            at = to;
        }
    }
    Ok(())
}
