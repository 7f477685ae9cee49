//! The stream: chunks as server-sent events, `[DONE]` at the end.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use hob_core::{Delta, FinishReason, TextDelta, ToolCallDelta, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::answer::WireUsage;
use super::new_call_id;
use super::stencil::Stencil;
use super::tool_calls::WireCall;
use crate::wire::client::Complaint;
use crate::wire::deltas::{DecodeError, Decoder};
use crate::wire::frames::Framing;
use crate::wire::sse::Event;

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
pub struct Chunks {
    /// How many answers were asked for.
    answers: u32,
    /// Answers of which anything came.
    begun: Vec<u32>,
    finished: Vec<u32>,
    /// How many calls each answer has begun.
    calls: HashMap<u32, u32>,
    usage: Option<Usage>,
    /// Of the latest chunk that was nothing but a piece of text.
    stencil: Option<Stencil>,
}

impl Chunks {
    pub fn new(answers: u32) -> Self {
        Chunks {
            answers,
            begun: Vec::new(),
            finished: Vec::new(),
            calls: HashMap::new(),
            usage: None,
            stencil: None,
        }
    }

    /// Reads a chunk; `frame` is what it came in.
    fn chunk(&mut self, data: &[u8], frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let chunk: Chunk<'_> = serde_json::from_slice(data)
            .map_err(|error| DecodeError::Malformed(format!("a chunk is no chunk ({error})")))?;
        let Some(choices) = chunk.choices else {
            return Err(match &chunk.error {
                Some(error) => reported(error),
                // SGLang puts the error's fields at the top.
                None => serde_json::from_slice(data)
                    .map_or_else(|error| DecodeError::Malformed(error.to_string()), |value| reported(&value)),
            });
        };
        self.stencil = match (choices.as_slice(), &chunk.usage, &chunk.error) {
            ([choice], None, None) => {
                choice.only_text().and_then(|text| Stencil::cut(choice.index, frame, text))
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
                let piece = self.tool_call(index, call);
                deltas.push_back(Delta::ToolCall(piece));
            }
        }
        if let Some(Text(reason)) = choice.finish_reason {
            self.finished.push(index);
            deltas.push_back(Delta::Finish { choice: index, reason: FinishReason::parse(&reason) });
        }
    }

    /// Services leave the index out, or the id; our callers get both.
    fn tool_call(&mut self, choice: u32, call: WireCall) -> ToolCallDelta {
        let begun = self.calls.entry(choice).or_default();
        let given = call.index;
        let piece = call.flatten();
        let index = given.unwrap_or_else(|| match (&piece.id, &piece.name) {
            (None, None) => begun.saturating_sub(1),
            _ => *begun,
        });
        let is_first = index >= *begun;
        if is_first {
            *begun = index.saturating_add(1);
        }
        ToolCallDelta {
            choice,
            index,
            id: if is_first { Some(piece.id.unwrap_or_else(new_call_id)) } else { None },
            name: piece.name,
            arguments: piece.arguments,
        }
    }

    fn done(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.push_back(Delta::Done { usage: self.usage });
    }
}

fn reported(error: &Value) -> DecodeError {
    let complaint = Complaint::of(error);
    match complaint.message {
        Some(message) => DecodeError::Reported { message, status: complaint.status },
        None => DecodeError::Malformed("a chunk has no choices".to_owned()),
    }
}

impl Decoder for Chunks {
    const FRAMING: Framing = Framing::Blocks;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Some(stencil) = &self.stencil
            && let Some(text) = stencil.text(frame)
        {
            if !text.is_empty() {
                let text = text.to_owned();
                deltas.push_back(Delta::Text(TextDelta { choice: stencil.choice, text, logprobs: None }));
            }
            return Ok(());
        }
        let Some(event) = Event::read(frame) else {
            return Ok(());
        };
        if let Some(error) = event.error {
            let complaint = Complaint::read(error);
            let message = complaint.message.unwrap_or_else(|| "an error without a text".to_owned());
            return Err(DecodeError::Reported { message, status: complaint.status });
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
