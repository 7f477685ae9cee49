//! Entries for the fuzz targets of Google's format.

use hob_core::GenerateRequest;
use serde_json::Value;

use super::answer::{self, read_models};
use super::events::GeminiDecoder;
use super::request::body;
use crate::fuzzing::packets::check_decoder;
use crate::wire::unsupported_field::UnsupportedField;

/// An answer, whole or as a stream.
pub fn check_answer(bytes: &[u8]) {
    check_decoder(bytes, GeminiDecoder::default);
    let _ = answer::read(bytes, &GenerateRequest::default());
    let _ = read_models(bytes);
}

/// The body of a request.
pub(crate) fn written(request: &GenerateRequest) -> Result<Value, UnsupportedField> {
    Ok(serde_json::to_value(body(request)?).unwrap_or_default())
}
