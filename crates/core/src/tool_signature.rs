//! A tool on one line, as programmers write it: `weather(city: string, days?: integer): The weather in a city`. It has a third of the
//! tokens of the equivalent JSON.

use serde_json::Value;

use crate::generate::ToolDefinition;

impl ToolDefinition {
    /// The tool on one line; `None` if its schema contains more than a line can express.
    pub fn signature(&self) -> Option<String> {
        let arguments = match &self.parameters {
            None => Vec::new(),
            Some(schema) => arguments(schema)?,
        };
        let description = self.description.as_deref().unwrap_or_default();
        Some(format!("{}({}): {description}", self.name, arguments.join(", ")))
    }
}

/// The arguments, if the schema contains only their names and types.
fn arguments(schema: &Value) -> Option<Vec<String>> {
    const PLAIN: [&str; 4] = ["type", "properties", "required", "additionalProperties"];
    let schema = schema.as_object()?;
    let is_closed = schema.get("additionalProperties").is_none_or(|further| *further == false);
    if !is_closed || !schema.keys().all(|key| PLAIN.contains(&key.as_str())) {
        return None;
    }
    let required: Vec<&str> = match schema.get("required") {
        Some(names) => names.as_array()?.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let Some(properties) = schema.get("properties") else { return Some(Vec::new()) };
    let argument = |(name, schema): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        Some(format!("{name}{mark}: {}", type_name(schema)?))
    };
    properties.as_object()?.iter().map(argument).collect()
}

/// A type, if it is a simple one.
fn type_name(schema: &Value) -> Option<String> {
    let fields = schema.as_object()?;
    match (fields.get("type")?.as_str()?, fields.len()) {
        (name @ ("string" | "integer" | "number" | "boolean"), 1) => Some(name.to_owned()),
        ("string", 2) => {
            let choices: Option<Vec<&str>> =
                fields.get("enum")?.as_array()?.iter().map(Value::as_str).collect();
            Some(choices?.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(" | "))
        }
        ("array", 2) => match fields.get("items")? {
            items if items.get("enum").is_none() => Some(format!("{}[]", type_name(items)?)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signature(parameters: Option<Value>) -> Option<String> {
        let (name, description) = ("weather".to_owned(), Some("The weather in a city".to_owned()));
        ToolDefinition { name, description, parameters, strict: None }.signature()
    }

    #[test]
    fn names_and_types_fit_on_a_line() {
        let parameters = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "days": { "type": "integer" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "unit": { "type": "string", "enum": ["C", "F"] },
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        let expected = r#"weather(city: string, days?: integer, tags?: string[], unit?: "C" | "F"): The weather in a city"#;
        assert_eq!(signature(Some(parameters)).as_deref(), Some(expected));
        assert_eq!(signature(None).as_deref(), Some("weather(): The weather in a city"));
        assert_eq!(signature(Some(json!({}))).as_deref(), Some("weather(): The weather in a city"));
    }

    #[test]
    fn a_schema_that_says_more_is_not_shortened() {
        for property in [
            json!({ "type": "string", "description": "With its country" }),
            json!({ "type": "string", "maxLength": 3 }),
            json!({ "type": ["string", "null"] }),
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a"] } }),
            json!({ "$ref": "#/$defs/city" }),
        ] {
            assert_eq!(
                signature(Some(json!({ "type": "object", "properties": { "city": property } }))),
                None
            );
        }
        for more in [json!({ "oneOf": [] }), json!({ "additionalProperties": true }), json!(true)] {
            assert_eq!(signature(Some(more)), None);
        }
    }
}
