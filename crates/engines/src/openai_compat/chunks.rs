//! The stream: chunks as server-sent events, `[DONE]` at the end.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use hob_core::{Delta, FinishReason, TextDelta, ToolCallDelta, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::answer::WireUsage;
use super::chunk_template::ChunkTemplate;
use super::tool_calls::{CallTracker, WireCall};
use crate::wire::deltas::{DecodeError, Decoder};
use crate::wire::engine_error::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

/// A text as it stands in the chunk, unless it has escapes. A `Cow` inside an `Option` would always be a copy.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    logprobs: Option<Box<Value>>,
}

impl Choice<'_> {
    /// The piece of text that this is, if it is nothing else.
    fn only_text(&self) -> Option<&str> {
        let plain =
            self.finish_reason.is_none() && self.logprobs.as_ref().is_none_or(|value| value.is_null());
        match &self.delta {
            Some(Piece {
                content: Some(Text(text)),
                reasoning_content: None,
                reasoning: None,
                tool_calls,
                ..
            }) if plain && tool_calls.as_ref().is_none_or(Vec::is_empty) => Some(text),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    /// The newer name. Versions of vLLM between the two send both.
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
}

/// Reads one stream.
#[derive(Debug)]
pub struct ChatChunkDecoder {
    /// How many answers were asked for.
    answers: u32,
    /// Answers of which anything came.
    begun: Vec<u32>,
    finished: Vec<u32>,
    /// The calls that each answer has begun.
    calls: HashMap<u32, CallTracker>,
    usage: Option<Usage>,
    /// Of the latest chunk that was nothing but a piece of text.
    template: Option<ChunkTemplate>,
}

impl ChatChunkDecoder {
    pub fn new(answers: u32) -> Self {
        ChatChunkDecoder {
            answers,
            begun: Vec::new(),
            finished: Vec::new(),
            calls: HashMap::new(),
            usage: None,
            template: None,
        }
    }

    /// Reads a chunk; `frame` is what it came in.
    fn chunk(&mut self, data: &[u8], frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let chunk: Chunk<'_> = serde_json::from_slice(data)
            .map_err(|error| DecodeError::unreadable(data, format!("a chunk is no chunk ({error})")))?;
        // An error counts whatever stands beside it: some services send it with choices that say nothing.
        if let Some(error) = &chunk.error {
            return Err(DecodeError::reported(EngineErrorBody::of(error)));
        }
        let Some(choices) = chunk.choices else {
            // SGLang puts the error's fields at the top.
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
        let mut logprobs = choice.logprobs.filter(|value| !value.is_null());
        if let Some(piece) = choice.delta {
            let thought = piece.reasoning_content.or(piece.reasoning);
            if let Some(Text(text)) = thought.filter(|Text(text)| !text.is_empty()) {
                deltas.push_back(Delta::Reasoning { choice: index, text: text.into_owned() });
            }
            let text = piece.content.or(piece.refusal).filter(|Text(text)| !text.is_empty());
            if text.is_some() || logprobs.is_some() {
                let text = text.map(|Text(text)| text.into_owned()).unwrap_or_default();
                deltas.push_back(Delta::Text(TextDelta { choice: index, text, logprobs: logprobs.take() }));
            }
            for call in piece.tool_calls.into_iter().flatten() {
                let piece = self.calls.entry(index).or_default().place(call);
                deltas.push_back(Delta::ToolCall(ToolCallDelta { choice: index, ..piece }));
            }
        }
        if let Some(Text(reason)) = choice.finish_reason {
            self.finished.push(index);
            deltas.push_back(Delta::Finish { choice: index, reason: FinishReason::parse(&reason) });
        }
    }

    fn done(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.push_back(Delta::Done { usage: self.usage });
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
            // Services that know of no `n` answer once, and when they say it is all, it is all they have. But what was begun
            // must be finished.
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
        // Some services close instead of saying `[DONE]`. With every answer finished nothing is missing.
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
