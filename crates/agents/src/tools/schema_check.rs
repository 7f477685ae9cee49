//! Parses the arguments of a call, and explains to the model what is wrong with them.

use hob_core::request_budget::can_collect_errors;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use super::truncate::truncate;

const MAX_ERRORS: usize = 5;
/// An error repeats the value, which may be long.
const MAX_ERROR_CHARACTERS: usize = 300;

/// Parses the arguments. Models omit the braces of a call without arguments.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(text).map_err(|error| {
        format!(
            "the arguments are not JSON ({error}); send one JSON object that follows the schema of the tool"
        )
    })
}

/// Checks the arguments against the schema of a tool, which was made of `parameters`.
pub(super) fn check(schema: &Validator, parameters: &Value, arguments: &Value) -> Result<(), String> {
    if schema.is_valid(arguments) {
        return Ok(());
    }
    if !can_collect_errors(parameters, arguments) {
        return Err("the arguments do not follow the schema of the tool".to_owned());
    }
    let complaints: Vec<String> =
        schema.iter_errors(arguments).take(MAX_ERRORS).map(|error| complaint(&error)).collect();
    match complaints.as_slice() {
        [] => Ok(()),
        some => Err(format!("the arguments do not follow the schema of the tool: {}", some.join("; "))),
    }
}

fn complaint(error: &ValidationError<'_>) -> String {
    let field = error.instance_path().as_str().trim_start_matches('/');
    let complaint = match field {
        "" => error.to_string(),
        field => format!("'{field}': {error}"),
    };
    truncate(complaint, MAX_ERROR_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(arguments: Value) -> Result<(), String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "expression": { "type": "string" },
                "options": { "type": "object", "properties": { "digits": { "type": "integer", "maximum": 20 } } },
            },
            "required": ["expression"],
            "additionalProperties": false,
        });
        check(&jsonschema::validator_for(&schema).unwrap(), &schema, &arguments)
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        const HEAD: &str = "the arguments do not follow the schema of the tool: ";
        let cases = [
            (json!({ "expression": 5 }), r#"'expression': 5 is not of type "string""#),
            (json!({}), r#""expression" is a required property"#),
            (json!([]), r#"[] is not of type "object""#),
            (
                json!({ "expression": "1", "options": { "digits": 99 } }),
                "'options/digits': 99 is greater than the maximum of 20",
            ),
            (
                json!({ "expression": "1", "mode": "x" }),
                "Additional properties are not allowed ('mode' was unexpected)",
            ),
        ];
        for (arguments, words) in cases {
            assert_eq!(complaints(arguments), Err(format!("{HEAD}{words}")));
        }
        assert_eq!(complaints(json!({ "expression": "1+1" })), Ok(()));
    }

    #[test]
    fn a_huge_wrong_value_is_not_repeated_whole() {
        let complaint = complaints(json!({ "expression": vec![1; 100_000] })).unwrap_err();
        assert!(complaint.chars().count() < 500, "{complaint}");
    }

    #[test]
    fn arguments_with_more_errors_than_could_be_collected_are_checked() {
        let itself = json!({ "$ref": "#" });
        let schema = json!({ "type": "object", "properties": { "a": { "allOf": [{ "anyOf": [itself, itself] }, itself] } } });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let nested = |innermost: Value| (0..40).fold(innermost, |inner, _| json!({ "a": inner }));
        assert_eq!(check(&validator, &schema, &nested(json!({}))), Ok(()));
        let complaint = "the arguments do not follow the schema of the tool";
        assert_eq!(check(&validator, &schema, &nested(json!(1))), Err(complaint.to_owned()));
    }

    #[test]
    fn no_arguments_at_all_are_an_empty_object() {
        assert_eq!(parse(" \n"), Ok(json!({})));
        assert_eq!(parse("{\"a\":1}"), Ok(json!({ "a": 1 })));
    }

    #[test]
    fn what_is_not_json_says_where() {
        let reason = parse("{\"a\":1,}").unwrap_err();
        assert!(
            reason.starts_with("the arguments are not JSON (trailing comma at line 1 column 8)"),
            "{reason}"
        );
    }
}
