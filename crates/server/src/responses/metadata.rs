//! What a caller attaches to a response or a conversation.

use serde_json::{Map, Value};

use crate::error::{ApiError, ApiResult};

const METADATA_ENTRIES: usize = 16;
const METADATA_KEY_CHARS: usize = 64;
const METADATA_VALUE_CHARS: usize = 512;

/// Checks what a caller attaches to a response or a conversation.
pub(super) fn check_metadata(metadata: Option<&Map<String, Value>>) -> ApiResult<()> {
    let Some(metadata) = metadata else { return Ok(()) };
    if metadata.len() > METADATA_ENTRIES {
        let message = format!("metadata has {} entries; the limit is {METADATA_ENTRIES}", metadata.len());
        return Err(ApiError::invalid("metadata", message));
    }
    for (key, value) in metadata {
        let Value::String(value) = value else {
            return Err(ApiError::invalid("metadata", "the values of metadata are strings"));
        };
        if key.chars().count() > METADATA_KEY_CHARS || value.chars().count() > METADATA_VALUE_CHARS {
            let message = format!(
                "a key of metadata has at most {METADATA_KEY_CHARS} characters, and a value at most {METADATA_VALUE_CHARS}"
            );
            return Err(ApiError::invalid("metadata", message));
        }
    }
    Ok(())
}
