//! The response object: in the body of a whole answer, in the events of a stream, and in the store.

use hob_core::{AnswerWarning, FinishReason, Generation, Usage};
use serde::Serialize;

use super::echo::EchoedFields;
use super::output::{OutputForm, OutputItem, OutputItems};
use crate::error::ApiError;
use crate::json::push_json;

/// The states of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Incomplete => "incomplete",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// The state of a response whose model ended for `reason`.
    pub(super) fn after(reason: Option<&FinishReason>) -> Self {
        match incomplete_reason(reason) {
            None => Status::Completed,
            Some(_) => Status::Incomplete,
        }
    }
}

/// Why an answer is not complete.
fn incomplete_reason(reason: Option<&FinishReason>) -> Option<&'static str> {
    match reason {
        Some(FinishReason::Length) => Some("max_output_tokens"),
        Some(FinishReason::ContentFilter) => Some("content_filter"),
        Some(_) | None => None,
    }
}

/// What all states of a response have in common.
#[derive(Debug)]
pub(super) struct ResponseObject {
    pub(super) id: String,
    created: u64,
    model: String,
    /// What the caller of a response in the background cannot read in the head of its answer.
    warnings: Vec<String>,
    /// The repeated fields, with a comma before the first one and the closing brace.
    rest: Vec<u8>,
}

/// What changes.
#[derive(Debug, Default)]
pub(super) struct Progress<'a> {
    pub(super) output: &'a [OutputItem],
    pub(super) usage: Option<Usage>,
    pub(super) reason: Option<&'a FinishReason>,
    pub(super) error: Option<&'a ApiError>,
    pub(super) completed_at: Option<u64>,
}

/// A response that does not change any more.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: Status,
    pub(super) body: Vec<u8>,
    pub(super) output: Vec<OutputItem>,
}

impl ResponseObject {
    pub(super) fn new(id: &str, created: u64, model: &str, echo: EchoedFields, store: bool) -> Self {
        let EchoedFields(mut rest) = echo;
        rest.extend_from_slice(if store { b",\"store\":true}" } else { b",\"store\":false}" });
        ResponseObject { id: id.to_owned(), created, model: model.to_owned(), warnings: Vec::new(), rest }
    }

    /// Says in the object what of the request had no effect.
    pub(super) fn set_warnings<'a>(&mut self, warnings: impl Iterator<Item = &'a AnswerWarning>) {
        let shown = warnings.filter(|warning| !matches!(warning, AnswerWarning::Queued { .. }));
        self.warnings = shown.map(|warning| warning.text().into_owned()).collect();
    }

    /// The model that answers, where it is known only later.
    pub(super) fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// The part of the id that the ids of items share.
    pub(super) fn suffix(&self) -> &str {
        self.id.split_once('_').map_or(self.id.as_str(), |(_, suffix)| suffix)
    }

    /// Appends the object.
    pub(super) fn push(&self, out: &mut Vec<u8>, status: Status, progress: &Progress<'_>) {
        out.extend_from_slice(b"{\"id\":");
        push_json(out, &self.id);
        out.extend_from_slice(b",\"object\":\"response\",\"created_at\":");
        push_json(out, &self.created);
        out.extend_from_slice(b",\"status\":\"");
        out.extend_from_slice(status.as_str().as_bytes());
        out.extend_from_slice(b"\",\"completed_at\":");
        push_json(out, &progress.completed_at.filter(|_| status == Status::Completed));
        out.extend_from_slice(b",\"error\":");
        push_json(out, &progress.error.map(WireError::of));
        out.extend_from_slice(b",\"incomplete_details\":");
        let reason = incomplete_reason(progress.reason).filter(|_| status == Status::Incomplete);
        push_json(out, &reason.map(|reason| IncompleteDetails { reason }));
        out.extend_from_slice(b",\"model\":");
        push_json(out, &self.model);
        out.extend_from_slice(b",\"output\":[");
        for (index, item) in progress.output.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&item.json);
        }
        out.extend_from_slice(b"],\"usage\":");
        push_json(out, &progress.usage.map(WireUsage::from));
        if !self.warnings.is_empty() {
            out.extend_from_slice(b",\"hob_warnings\":");
            push_json(out, &self.warnings);
        }
        out.extend_from_slice(&self.rest);
    }

    /// The object as text.
    pub(super) fn render(&self, status: Status, progress: &Progress<'_>) -> Vec<u8> {
        let output: usize = progress.output.iter().map(|item| item.json.len() + 1).sum();
        let mut out = Vec::with_capacity(320 + self.rest.len() + output);
        self.push(&mut out, status, progress);
        out
    }

    /// The response as one that failed, without what it has said.
    pub(super) fn failed(&self, error: &ApiError) -> Finished {
        let body = self.render(Status::Failed, &Progress { error: Some(error), ..Progress::default() });
        Finished { status: Status::Failed, body, output: Vec::new() }
    }

    /// A whole answer.
    pub(super) fn finish(&self, generation: &Generation, form: &OutputForm, now: u64) -> Finished {
        let output = OutputItems::of(&generation.answer, self.suffix(), form);
        let reason = Some(&generation.answer.finish_reason);
        let progress = Progress {
            output: &output,
            usage: Some(generation.usage.unwrap_or_default()),
            reason,
            completed_at: Some(now),
            ..Progress::default()
        };
        let status = Status::after(reason);
        Finished { status, body: self.render(status, &progress), output }
    }
}

#[derive(Serialize)]
struct IncompleteDetails {
    reason: &'static str,
}

#[derive(Serialize)]
struct WireError<'a> {
    code: &'a str,
    message: &'a str,
}

/// The codes of a failed response that clients compare: those that the API documents, of which an engine that answers texts has some,
/// and those that OpenAI sends all the same. An engine's own code can be one of them.
const COMPARED_CODES: [&str; 12] = [
    "rate_limit_exceeded",
    "insufficient_quota",
    "context_length_exceeded",
    "content_filter",
    "invalid_prompt",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "image_too_large",
    "image_parse_error",
    "image_content_policy_violation",
    "unsupported_image_media_type",
];

impl<'a> WireError<'a> {
    /// The API has a list of codes, so that an error with any other gets the one that fits its status; the message has the details.
    fn of(error: &'a ApiError) -> Self {
        let code = match error.code() {
            Some(code) if COMPARED_CODES.contains(&code) => code,
            _ if error.is_rate_limit() => "rate_limit_exceeded",
            _ => "server_error",
        };
        WireError { code, message: error.message() }
    }
}

/// Token counts. Each is zero if the engine does not count it.
#[derive(Debug, Serialize)]
struct WireUsage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for WireUsage {
    fn from(usage: Usage) -> Self {
        WireUsage {
            input_tokens: usage.prompt_tokens,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cached_tokens.unwrap_or(0),
                cache_write_tokens: 0,
            },
            output_tokens: usage.completion_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens: usage.reasoning_tokens.unwrap_or(0) },
            total_tokens: usage.total_tokens(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::EngineError;

    use super::*;

    #[test]
    fn a_failed_response_has_a_code_that_clients_know() {
        for (status, own_code, code) in [
            (400, Some("content_filter"), "content_filter"),
            (400, Some("image_too_large"), "image_too_large"),
            (429, None, "rate_limit_exceeded"),
            (429, Some("insufficient_quota"), "insufficient_quota"),
            (429, Some("1302"), "rate_limit_exceeded"),
            (422, Some("no_such_knob"), "server_error"),
            (503, Some("unavailable_error"), "server_error"),
            (500, None, "server_error"),
        ] {
            let error: ApiError = EngineError::Refused {
                engine: "vllm".into(),
                status,
                message: "no".into(),
                code: own_code.map(str::to_owned),
                param: None,
                retry_after: None,
            }
            .into();
            assert_eq!(WireError::of(&error).code, code, "{status} {own_code:?}");
        }
    }
}
