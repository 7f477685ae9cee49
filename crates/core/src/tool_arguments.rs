//! The arguments that a model wrote: as a tool's own type, and as part of a history.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::budget::{BODY_VALUES, json_values};
use crate::tool::ToolError;

/// Arguments that every engine accepts in a history.
pub const NONE: &str = "{}";

/// Reads arguments. They match the schema, so only values that no schema can describe are errors.
pub fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(format!("the arguments do not fit: {error}")))
}

/// Whether engines accept a text in a history as the arguments of a call: they refuse all that is no JSON object, such as the arguments
/// of a call that was cut off. A text with more values than a request may have is not parsed; [`crate::budget`] refuses it.
pub fn can_be_replayed(text: &str) -> bool {
    let has_too_many = || text.len() > BODY_VALUES && json_values(text.as_bytes(), BODY_VALUES) > BODY_VALUES;
    text.trim().is_empty() || has_too_many() || serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_or_nothing_can_be_replayed() {
        for text in ["{}", " {\"a\":[1]}\n", "", " \n"] {
            assert!(can_be_replayed(text), "{text}");
        }
        for text in
            ["{\"a", "{\"a\":\"line\nbreak\"}", r#"{"a":"\ud83d"}"#, "[1]", "7", "null", r#""{}""#, "{} {}"]
        {
            assert!(!can_be_replayed(text), "{text}");
        }
        assert!(can_be_replayed(&"[".repeat(2 * BODY_VALUES)), "the budget refuses it");
    }
}
