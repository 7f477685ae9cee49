//! Entries for the fuzz targets of Ollama's format.

use hob_core::{GenerateRequest, ReplyMode, Sampling, ToolChoice, ToolDefinition};
use serde_json::Value;

use super::chat_response::{OllamaDecoder, read_whole};
use super::models::{read_details, read_running, read_running_contexts, read_tags};
use super::request::{Body, OllamaBodyOptions, Thinking};
use crate::fuzzing::packets::check_decoder;
use crate::wire::unsupported_field::UnsupportedField;

/// An answer, whole or as a stream, to a plain question, to one with forced calls, and to one for probabilities.
pub fn check_answer(bytes: &[u8]) {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: None,
        strict: None,
    };
    let plain = GenerateRequest { model: "model".to_owned(), ..GenerateRequest::default() };
    let forced = GenerateRequest {
        tools: vec![tool("one"), tool("two")],
        tool_choice: Some(ToolChoice::Required),
        ..plain.clone()
    };
    let named =
        GenerateRequest { tool_choice: Some(ToolChoice::Function("one".to_owned())), ..forced.clone() };
    let scored =
        GenerateRequest { sampling: Sampling { logprobs: true, ..Sampling::default() }, ..plain.clone() };
    for request in [&plain, &forced, &named, &scored] {
        check_decoder(bytes, || OllamaDecoder::new(request));
        let _ = read_whole(bytes, request);
    }
    let _ = read_tags(bytes);
    let _ = read_running(bytes);
    let _ = read_running_contexts(bytes);
    let _ = read_details(bytes);
}

/// The body of a request.
pub(crate) fn written(request: &GenerateRequest, reply_mode: ReplyMode) -> Result<Value, UnsupportedField> {
    super::request::check(request)?;
    let body = Body::of(request, OllamaBodyOptions { reply_mode, thinking: Thinking::Level, answer: 0 })?;
    Ok(serde_json::to_value(&body).unwrap_or_default())
}
