//! The stream: parts of an answer as server-sent events, without a final event. The answer is complete when every
//! candidate has a finish reason.

use std::collections::{BTreeMap, VecDeque};

use hob_core::{Delta, GenerateRequest, TextDelta, ToolCallDelta, Usage};
use serde_json::Value;

use super::call_id;
use super::wire_types::{Candidate, WireAnswer, WirePart, finish_reason};
use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;
use crate::wire::stream_decoder::{DecodeError, Decoder};

/// The state of one candidate.
#[derive(Debug, Default)]
struct Progress {
    calls: u32,
    /// Some models send it with every part, so it counts only when the stream ends.
    finish_reason: Option<String>,
}

/// Decodes one stream.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    candidates: BTreeMap<u32, Progress>,
    usage: Option<Usage>,
    /// Whether the calls of a candidate after its first one are dropped. Google has no option for that.
    one_call: bool,
}

impl GeminiDecoder {
    pub(super) fn new(request: &GenerateRequest) -> Self {
        GeminiDecoder { one_call: request.parallel_tool_calls == Some(false), ..GeminiDecoder::default() }
    }

    /// Takes the next part of the answer, or all of it.
    pub(super) fn take(
        &mut self,
        answer: WireAnswer,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), DecodeError> {
        if let Some(error) = &answer.error {
            return Err(DecodeError::reported(EngineErrorBody::of(error)));
        }
        let candidates = answer.candidates.unwrap_or_default();
        let blocked = answer.prompt_feedback.and_then(|feedback| feedback.block_reason);
        if let (true, Some(reason)) = (candidates.is_empty(), blocked) {
            return Err(DecodeError::Reported {
                message: format!("the prompt was blocked ({reason})"),
                code: Some("content_filter".to_owned()),
                status: Some(400),
            });
        }
        if let Some(usage) = answer.usage_metadata {
            self.usage = Some(usage.into());
        }
        for candidate in candidates {
            self.candidate(candidate, deltas);
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate, deltas: &mut VecDeque<Delta>) {
        let choice = candidate.index;
        let progress = self.candidates.entry(choice).or_default();
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            if self.one_call && progress.calls > 0 && part.function_call.is_some() {
                continue;
            }
            deltas.extend(progress.part(choice, part));
        }
        if candidate.finish_reason.is_some() {
            progress.finish_reason = candidate.finish_reason;
        }
    }
}

impl Progress {
    fn part(&mut self, choice: u32, part: WirePart) -> Option<Delta> {
        if let Some(call) = part.function_call {
            let index = self.calls;
            self.calls = self.calls.saturating_add(1);
            return Some(Delta::ToolCall(ToolCallDelta {
                choice,
                index,
                id: Some(call_id::join(call.id, part.thought_signature.as_deref())),
                name: Some(call.name),
                arguments: Value::Object(call.args.unwrap_or_default()).to_string(),
            }));
        }
        let text = part.text.filter(|text| !text.is_empty())?;
        Some(if part.thought == Some(true) {
            Delta::Reasoning { choice, text }
        } else {
            Delta::Text(TextDelta { choice, text, logprobs: None })
        })
    }
}

impl Decoder for GeminiDecoder {
    const FRAMING: Framing = Framing::Blocks;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let Some(event) = SseEvent::read(frame) else {
            return DecodeError::in_place_of_event(frame);
        };
        let answer = serde_json::from_slice(&event.data).map_err(|error| {
            DecodeError::unreadable(&event.data, format!("invalid chunk in the stream ({error})"))
        })?;
        self.take(answer, deltas)
    }

    fn end(&mut self, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if self.candidates.is_empty() {
            return Err(DecodeError::Incomplete);
        }
        for (choice, progress) in &self.candidates {
            let word = progress.finish_reason.as_deref().ok_or(DecodeError::Incomplete)?;
            deltas.push_back(Delta::Finish {
                choice: *choice,
                reason: finish_reason(word, progress.calls > 0),
            });
        }
        deltas.push_back(Delta::Done { usage: self.usage });
        Ok(())
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
