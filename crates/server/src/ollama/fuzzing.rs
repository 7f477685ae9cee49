//! Entries for the fuzz targets of Ollama's API.

use hob_core::{GenerateRequest, request_budget};

use super::chat_request;
use super::embed;
use super::generate_request::{self, OllamaPrompt};
use super::settings::OllamaRequest;
use super::template::{TemplateValues, render};
use crate::fuzzing::json::check_parser;

/// The bodies of `POST /api/chat`, `/api/generate`, `/api/embed` and `/api/embeddings`. Returns the conversation.
pub fn ollama(body: &[u8]) -> Option<GenerateRequest> {
    check_parser(body, embed::parse);
    check_parser(body, embed::parse_one);
    if let Some(OllamaPrompt { parsed, text }) = check_parser(body, generate_request::parse)
        && let Some(text) = text
    {
        let _ = generate_request::continuing(parsed.request, text);
    }
    let OllamaRequest { request, .. } = check_parser(body, chat_request::parse)?;
    assert!(request_budget::check_request(&request).is_ok(), "a request over its budget is accepted");
    Some(request)
}

/// A prompt template, with a system message, a prompt and a suffix after it, each after a zero byte.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut texts = text.split('\0');
    let mut next = || texts.next().unwrap_or_default();
    let (template, system, prompt, suffix) = (next(), next(), next(), next());
    let most = 64 << 10;
    if let Ok(made) = render(template, TemplateValues { system, prompt, suffix }, most) {
        assert!(made.len() <= most, "a prompt is longer than the limit");
    }
}
