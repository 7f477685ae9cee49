//! The stream of a conversation or of a text completion: chunks as server-sent events, with `[DONE]` at the end.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use hob_core::{Delta, FinishReason, ReasoningSeal, SealedReasoning, TextDelta, ToolCallDelta, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{WireUsage, finish};
use super::chunk_template::ChunkTemplate;
use super::legacy_logprobs;
use super::message_content::MessageContent;
use super::tool_calls::{CallTracker, WireCall};
use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;
use crate::wire::stream_decoder::{DecodeError, Decoder};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

/// A text, borrowed from the chunk unless it has escapes. Serde always copies a `Cow` inside an `Option`.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text))
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    /// In the place of `delta` in the stream of a text completion.
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    /// The stop sequence, in vLLM and SGLang.
    stop_reason: Option<Value>,
    matched_stop: Option<Value>,
    logprobs: Option<Box<Value>>,
}

impl Choice<'_> {
    /// The text of this chunk, if it has nothing else.
    fn only_text(&self) -> Option<&str> {
        let plain =
            self.finish_reason.is_none() && self.logprobs.as_ref().is_none_or(|value| value.is_null());
        match (&self.delta, &self.text) {
            (None, Some(Text(text))) if plain => Some(text),
            (
                Some(Piece {
                    content: Some(MessageContent::Text(Text(text))),
                    reasoning_content: None,
                    reasoning: None,
                    thinking_blocks: None,
                    tool_calls,
                    ..
                }),
                None,
            ) if plain && tool_calls.as_ref().is_none_or(Vec::is_empty) => Some(text),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    content: Option<MessageContent<Text<'a>>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    /// The newer name. Some versions of vLLM send both.
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    tool_calls: Option<Vec<WireCall>>,
    /// LiteLLM: what Anthropic signed or hid. The text of signed blocks comes as `reasoning_content` too.
    thinking_blocks: Option<Vec<Value>>,
}

/// Decodes one stream.
#[derive(Debug)]
pub struct ChatChunkDecoder {
    /// The number of requested answers.
    answers: u32,
    /// The answers that have started.
    begun: Vec<u32>,
    finished: Vec<u32>,
    /// The answers with an empty reason, which may have ended.
    unexplained: BTreeSet<u32>,
    /// The tool calls of each answer.
    calls: HashMap<u32, CallTracker>,
    usage: Option<Usage>,
    /// From the latest chunk that had nothing but text.
    template: Option<ChunkTemplate>,
}

impl ChatChunkDecoder {
    pub fn new(answers: u32) -> Self {
        ChatChunkDecoder {
            answers,
            begun: Vec::new(),
            finished: Vec::new(),
            unexplained: BTreeSet::new(),
            calls: HashMap::new(),
            usage: None,
            template: None,
        }
    }

    /// Decodes the chunk `data` of the frame `frame`.
    fn chunk(&mut self, data: &[u8], frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let chunk: Chunk<'_> = serde_json::from_slice(data).map_err(|error| {
            DecodeError::unreadable(data, format!("invalid chunk in the stream ({error})"))
        })?;
        // An error counts even with other fields: some services send it together with empty choices.
        if let Some(error) = &chunk.error {
            return Err(DecodeError::reported(EngineErrorBody::of(error)));
        }
        let Some(choices) = chunk.choices else {
            // SGLang puts the error's fields at the top level.
            return Err(match serde_json::from_slice(data).map(|value: Value| EngineErrorBody::of(&value)) {
                Ok(error_body @ EngineErrorBody { message: Some(_), .. }) => {
                    DecodeError::reported(error_body)
                }
                _ => DecodeError::Malformed("a chunk has no choices".to_owned()),
            });
        };
        self.template = match (choices.as_slice(), &chunk.usage) {
            ([choice], None) => {
                choice.only_text().and_then(|text| ChunkTemplate::cut(choice.index, frame, text))
            }
            _ => None,
        };
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        for choice in choices {
            self.choice(choice, deltas);
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, deltas: &mut VecDeque<Delta>) {
        let index = choice.index;
        if !self.begun.contains(&index) {
            self.begun.push(index);
        }
        let mut logprobs = choice
            .logprobs
            .filter(|value| !value.is_null())
            .map(|value| Box::new(legacy_logprobs::in_chat_form(*value)));
        let text = choice.text.filter(|Text(text)| !text.is_empty());
        if let Some(Text(text)) = text {
            let text = text.into_owned();
            deltas.push_back(Delta::Text(TextDelta { choice: index, text, logprobs: logprobs.take() }));
        }
        if let Some(piece) = choice.delta {
            let (thought, content) = piece.content.map(MessageContent::split).unwrap_or_default();
            let thought = thought.or(piece.reasoning_content).or(piece.reasoning);
            if let Some(Text(text)) = thought.filter(|Text(text)| !text.is_empty()) {
                deltas.push_back(Delta::Reasoning { choice: index, text: text.into_owned() });
            }
            let blocks = piece.thinking_blocks.iter().flatten().filter_map(SealedReasoning::from_value);
            deltas.extend(blocks.map(|block| Delta::ReasoningSeal { choice: index, seal: seal(block) }));
            let text = content.or(piece.refusal).filter(|Text(text)| !text.is_empty());
            if text.is_some() || logprobs.is_some() {
                let text = text.map(|Text(text)| text.into_owned()).unwrap_or_default();
                deltas.push_back(Delta::Text(TextDelta { choice: index, text, logprobs: logprobs.take() }));
            }
            for call in piece.tool_calls.into_iter().flatten() {
                let piece = self.calls.entry(index).or_default().place(call);
                deltas.push_back(Delta::ToolCall(ToolCallDelta { choice: index, ..piece }));
            }
        }
        match choice.finish_reason {
            // Some engines write an empty reason into every chunk.
            Some(Text(reason)) if reason.is_empty() => {
                self.unexplained.insert(index);
            }
            // OpenRouter sends the reason again with the usage.
            Some(_) if self.finished.contains(&index) => {}
            Some(Text(reason)) => {
                self.finished.push(index);
                let reason = finish(&reason, choice.stop_reason.or(choice.matched_stop));
                deltas.push_back(Delta::Finish { choice: index, reason });
            }
            None => {}
        }
    }

    /// Finishes answers whose engine gives only empty reasons.
    fn finish_unexplained(&mut self, deltas: &mut VecDeque<Delta>) {
        for choice in std::mem::take(&mut self.unexplained) {
            if self.finished.contains(&choice) {
                continue;
            }
            let has_calls = self.calls.contains_key(&choice);
            let reason = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
            self.finished.push(choice);
            deltas.push_back(Delta::Finish { choice, reason });
        }
    }

    fn done(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.push_back(Delta::Done { usage: self.usage });
    }

    /// Parses the next chunk in full.
    #[cfg(fuzzing)]
    pub(super) fn forget_template(&mut self) {
        self.template = None;
    }
}

/// The end of a block of reasoning.
fn seal(block: SealedReasoning) -> ReasoningSeal {
    match block {
        SealedReasoning::Signed { text: _, signature } => ReasoningSeal::Signature(signature),
        SealedReasoning::Redacted { data } => ReasoningSeal::Redacted(data),
    }
}

impl Decoder for ChatChunkDecoder {
    const FRAMING: Framing = Framing::Blocks;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Some(template) = &self.template
            && let Some(text) = template.text(frame)
        {
            if !text.is_empty() {
                let text = text.to_owned();
                deltas.push_back(Delta::Text(TextDelta { choice: template.choice, text, logprobs: None }));
            }
            return Ok(());
        }
        let Some(event) = SseEvent::read(frame) else {
            return DecodeError::in_place_of_event(frame);
        };
        if let Some(error) = event.error {
            return Err(DecodeError::reported(EngineErrorBody::read(error)));
        }
        if event.data.trim_ascii() == b"[DONE]" {
            // Services without support for `n` send one answer. `[DONE]` ends the stream, but every answer that
            // started must have finished.
            self.finish_unexplained(deltas);
            let unfinished = self.begun.iter().any(|choice| !self.finished.contains(choice));
            if self.finished.is_empty() || unfinished {
                return Err(DecodeError::Incomplete);
            }
            self.done(deltas);
            return Ok(());
        }
        self.chunk(&event.data, frame, deltas)
    }

    fn end(&mut self, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        // Some services close the connection instead of sending `[DONE]`. If every answer has finished, the stream is
        // complete.
        if (0..self.answers).all(|choice| self.finished.contains(&choice)) {
            self.done(deltas);
            Ok(())
        } else {
            Err(DecodeError::Incomplete)
        }
    }
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
