//! The short description of a tool in the prompt of an agent, which the model reads before every answer: the first sentence of
//! the description, and names, types and choices of the arguments.

use serde_json::{Map, Value};

/// Keywords that a model does not need: a call that breaks these rules is refused with an error that names the rule.
const OMITTED: [&str; 6] =
    ["additionalProperties", "description", "minLength", "maxLength", "minimum", "maximum"];

/// The first sentence.
pub(super) fn short_description(description: &str) -> &str {
    description.split_once(". ").map_or(description, |(first, _)| &description[..=first.len()])
}

/// The schema of the arguments, without those in `rare`. A parameter that may be null is optional.
pub(super) fn short_schema(schema: &Value, rare: &[&str]) -> Value {
    let mut short = shortened(schema);
    if let Some(Value::Object(properties)) = short.get_mut("properties") {
        properties.retain(|name, _| !rare.contains(&name.as_str()));
    }
    short
}

fn shortened(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let short = fields.iter().filter(|(name, _)| !OMITTED.contains(&name.as_str()));
    Value::Object(short.map(|(name, value)| (name.clone(), short_field(name, value))).collect::<Map<_, _>>())
}

fn short_field(name: &str, value: &Value) -> Value {
    match (name, value) {
        // Names of parameters, not of rules.
        ("properties", Value::Object(properties)) => {
            Value::Object(properties.iter().map(|(name, schema)| (name.clone(), shortened(schema))).collect())
        }
        ("type" | "enum", Value::Array(values)) => {
            let mut values: Vec<Value> =
                values.iter().filter(|value| !value.is_null() && *value != "null").cloned().collect();
            match (name, values.len()) {
                ("type", 1) => values.remove(0),
                _ => Value::Array(values),
            }
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_schema_has_names_types_and_choices() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "minimum": { "type": ["integer", "null"], "minimum": 1, "maximum": 20, "description": "At least" },
                "status": { "type": ["string", "null"], "enum": ["active", null] },
                "tools": { "type": ["array", "null"], "items": { "type": "string" } },
                "description": { "type": "string" },
                "agent": { "type": "string" }
            },
            "required": ["path"],
            "additionalProperties": false
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "minimum": { "type": "integer" },
                "status": { "type": "string", "enum": ["active"] },
                "tools": { "type": "array", "items": { "type": "string" } },
                "description": { "type": "string" }
            },
            "required": ["path"]
        });
        assert_eq!(short_schema(&schema, &["agent"]), expected);
        assert_eq!(short_description("Does it. And more: a.b, 1.5 and so on."), "Does it.");
        assert_eq!(short_description("Does 1.5 of it."), "Does 1.5 of it.");
    }
}
