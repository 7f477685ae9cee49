//! Entries for the fuzz targets of OpenAI's API.

use hob_core::{GenerateRequest, request_budget};

use super::chat_request::ChatRequest;
use super::completions_request::TextCompletionRequest;
use super::embeddings_body::EmbeddingsRequest;
use super::multipart::parts;
use super::rerank::DocumentsRequest;
use super::tokenize::{SplitRequest, parse_tokens};
use crate::fuzzing::json::check_parser;

/// The body of `POST /v1/chat/completions`.
pub fn chat(body: &[u8]) -> Option<GenerateRequest> {
    let ChatRequest { request, .. } = check_parser(body, ChatRequest::parse)?;
    assert!(request_budget::check_request(&request).is_ok(), "a request over its budget is accepted");
    Some(request)
}

/// The body of `POST /v1/completions`.
pub fn completion(body: &[u8]) {
    if let Some(completion) = check_parser(body, TextCompletionRequest::parse) {
        assert!(!completion.request.prompts.is_empty(), "a request without a prompt is accepted");
    }
}

/// The bodies of embeddings, of reranking and of tokens.
pub fn inputs(body: &[u8]) {
    check_parser(body, EmbeddingsRequest::parse);
    check_parser(body, DocumentsRequest::parse);
    check_parser(body, SplitRequest::parse);
    check_parser(body, parse_tokens);
}

/// A form with a file: its content type is the first line, its body the rest.
pub fn multipart(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(content_type) = std::str::from_utf8(&bytes[..end]) else { return };
    let body = &bytes[end + 1..];
    if let Ok(parts) = parts(content_type, body) {
        let contents: usize = parts.iter().map(|part| part.name.len() + part.content.len()).sum();
        assert!(contents <= body.len(), "the parts have more bytes than the form");
    }
}
