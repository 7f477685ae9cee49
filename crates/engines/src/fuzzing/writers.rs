//! What each engine is asked for a caller's request.

use hob_core::{GenerateRequest, ReplyMode};
use serde::de::IgnoredAny;

use crate::openai_compat::request::{ChatBodyOptions, LengthField, ReasoningFields, ToolsField, body};

/// Writes a request for every engine. Each refuses it with the name of a field, or writes a JSON object.
pub fn write_requests(request: &GenerateRequest) {
    for reply_mode in [ReplyMode::Complete, ReplyMode::Streamed] {
        let options = ChatBodyOptions {
            reply_mode,
            tools: ToolsField::Offered,
            length_field: LengthField::MaxTokens,
            reasoning: ReasoningFields::All,
        };
        // Skipping values has no limit of depth, unlike reading them.
        let is_json = |bytes: &Vec<u8>| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        assert!(body(request, options).as_ref().is_ok_and(is_json), "the request is not JSON");
        let of_engines = [
            crate::ollama::fuzzing::written(request, reply_mode),
            crate::cloud::anthropic_fuzzing::written(request, reply_mode),
            crate::cloud::gemini_fuzzing::written(request),
        ];
        for written in of_engines {
            match written {
                Ok(value) => assert!(value.is_object(), "the request is no object: {value}"),
                Err(refused) => assert!(!refused.field.is_empty(), "a refusal names no field"),
            }
        }
    }
}
