//! The arguments that a model wrote, as a tool's own type.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::ToolError;

/// Reads arguments. They match the schema, so only values that no schema can describe are errors.
pub fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(format!("the arguments do not fit: {error}")))
}
