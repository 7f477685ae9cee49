//! Parses JSON bodies. An error says what is wrong in terms of JSON, not in terms of Rust types.

use std::borrow::Cow;

use hob_core::OverBudget;
use hob_core::request_budget::{MODEL_NAME_CHARS, check_body_values};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, ApiResult};

/// Characters of a wrong value in a message.
const SHOWN_CHARS: usize = 60;

/// Parses a body. The error names the field.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    check_body_values(body).map_err(over_budget)?;
    read_bounded(body)
}

/// Parses a body into a `T` that needs little memory for any body: it neither stores nor buffers unknown values.
pub(crate) fn read_bounded<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(body).map_err(|error| explain::<T>(body, &error))
}

/// The error for a value that is over a limit.
pub(crate) fn over_budget(over: OverBudget) -> ApiError {
    let message = over.to_string();
    ApiError::invalid(over.field, message)
}

/// Refuses a name that is longer than any model's.
pub(crate) fn check_model_name(model: &str) -> ApiResult<()> {
    let length = model.chars().count();
    match length > MODEL_NAME_CHARS {
        true => Err(over_budget(OverBudget::too_many("model", length, "characters", MODEL_NAME_CHARS))),
        false => Ok(()),
    }
}

/// Appends `value` as JSON. Writing plain values into memory cannot fail.
pub(crate) fn push_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}

/// Parses the body again to find the field. Only wrong requests pay for it.
fn explain<T: DeserializeOwned>(body: &[u8], error: &serde_json::Error) -> ApiError {
    if !error.is_data() {
        // serde_json has no category for this error.
        if error.to_string().starts_with("recursion limit exceeded") {
            return over_budget(OverBudget::body_depth());
        }
        return ApiError::malformed(format!("the request body is not valid JSON: {error}"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let Err(located) = serde_path_to_error::deserialize::<_, T>(&mut deserializer) else {
        return ApiError::malformed(error.to_string());
    };
    let path = match located.path().to_string() {
        root if root == "." => String::new(),
        path => path,
    };
    in_words(&path, without_position(&located.into_inner().to_string()))
}

/// Removes line and column: the field says where the error is.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(text, _)| text)
}

/// Translates serde's message about the value at `path`, which is empty for the body itself.
fn in_words(path: &str, message: &str) -> ApiError {
    if let Some(field) = quoted(message, "missing field ") {
        let field = field_of(path, field);
        return ApiError::invalid(field.as_str(), format!("{field} is missing"));
    }
    if let Some(field) = quoted(message, "duplicate field ") {
        // For the second occurrence the path already ends in the field.
        let field = if path.ends_with(field) { path.to_owned() } else { field_of(path, field) };
        return ApiError::invalid(field.as_str(), format!("{field} occurs twice"));
    }
    let mismatch = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .and_then(|rest| rest.rsplit_once(", expected "));
    let message = match mismatch {
        Some((found, expected)) => {
            format!("expected {}, got {}", expected_in_words(expected), found_in_words(found))
        }
        // serde's message for an array in place of an object.
        None if message.starts_with("invalid length ") && message.contains("expected struct ") => {
            "expected an object, got an array".to_owned()
        }
        None => message.to_owned(),
    };
    match path {
        "" => ApiError::malformed(format!("the request body is wrong: {message}")),
        path => ApiError::invalid(path, format!("{path}: {message}")),
    }
}

/// The name in backquotes that follows `prefix`.
fn quoted<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.strip_prefix(prefix)?.strip_prefix('`')?.strip_suffix('`')
}

fn field_of(path: &str, field: &str) -> String {
    match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    }
}

fn expected_in_words(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "i64" => "a whole number",
        "u32" | "u64" => "a whole number of 0 or more",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        // Callers do not see names of Rust types.
        ours if ours.starts_with("struct ") => "an object",
        other => other,
    }
}

fn found_in_words(found: &str) -> Cow<'_, str> {
    match found {
        "sequence" => return "an array".into(),
        "map" => return "an object".into(),
        _ => {}
    }
    let value = found.split_once('`').map(|(_, value)| value.trim_end_matches('`'));
    match (found.split(' ').next(), value) {
        (Some("integer" | "floating"), Some(number)) => format!("the number {number}").into(),
        (Some("boolean"), Some(word)) => word.to_owned().into(),
        (Some("string"), _) if found.chars().count() > SHOWN_CHARS => {
            let beginning: String = found.chars().take(SHOWN_CHARS).collect();
            format!("the {beginning}…\"").into()
        }
        (Some("string"), _) => format!("the {found}").into(),
        _ => found.into(),
    }
}
