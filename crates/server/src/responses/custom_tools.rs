//! Custom tools, whose input is free text. Engines know functions only, so a custom tool is offered as a function with one string, and a
//! call of it becomes the text again.

use hob_core::ToolDefinition;
use serde_json::{Value, json};

/// The one argument of the function.
const INPUT: &str = "input";

/// The function that represents a custom tool.
pub(super) fn definition(
    name: String,
    description: Option<String>,
    format: Option<&CustomFormat>,
) -> ToolDefinition {
    let description = match (description, format) {
        (description, None) => description,
        (None, Some(format)) => Some(format.in_words()),
        (Some(description), Some(format)) => Some(format!("{description}\n\n{}", format.in_words())),
    };
    let parameters = json!({
        "type": "object",
        "properties": { INPUT: { "type": "string", "description": "The whole input of the tool, as plain text." } },
        "required": [INPUT],
        "additionalProperties": false,
    });
    ToolDefinition { name, description, parameters: Some(parameters), strict: None }
}

/// A grammar for the input. It is part of the prompt; no engine enforces it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CustomFormat {
    pub(super) syntax: String,
    pub(super) definition: String,
}

impl CustomFormat {
    fn in_words(&self) -> String {
        format!("The input follows this {} grammar:\n{}", self.syntax, self.definition)
    }
}

/// The arguments of a call, for a conversation in which the tool was called with `input`.
pub(super) fn arguments(input: &str) -> String {
    json!({ INPUT: input }).to_string()
}

/// The input in the arguments of a call. A model that does not follow the schema has written the text itself.
pub(super) fn input(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(mut fields)) => match fields.remove(INPUT) {
            Some(Value::String(input)) if fields.is_empty() => input,
            _ => arguments.to_owned(),
        },
        Ok(Value::String(input)) => input,
        Ok(_) | Err(_) => arguments.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_call_survives_the_way_there_and_back() {
        for text in ["", "ls -l", "*** Begin Patch\n+\"ü\"\n*** End Patch", "{\"input\": 1}", "\"quoted\""] {
            assert_eq!(input(&arguments(text)), text);
        }
    }

    #[test]
    fn what_does_not_follow_the_schema_is_the_text_itself() {
        for text in
            ["ls -l", "", "{\"input\": 7}", "{\"command\": \"ls\"}", "{\"input\": \"a\", \"x\": 1}", "{\"in"]
        {
            assert_eq!(input(text), text);
        }
        assert_eq!(input("\"ls\""), "ls");
    }

    #[test]
    fn the_model_is_told_of_the_grammar() {
        let format = CustomFormat { syntax: "lark".into(), definition: "start: \"x\"".into() };
        let tool = definition("apply_patch".into(), Some("Edits files.".into()), Some(&format));
        assert_eq!(
            tool.description.as_deref(),
            Some("Edits files.\n\nThe input follows this lark grammar:\nstart: \"x\"")
        );
        assert_eq!(tool.parameters.unwrap()["required"], json!(["input"]));
    }
}
