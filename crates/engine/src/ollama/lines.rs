//! Answers of `POST /api/chat`: one JSON object for a whole answer, a line of such objects for a stream.

use std::collections::VecDeque;

use hob_core::{
    Collector, Delta, FinishReason, GenerateRequest, Generation, TextDelta, ToolCallDelta, Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat_completions::tool_calls::WireCall;
use crate::wire::client::Complaint;
use crate::wire::deltas::{DecodeError, Decoder};
use crate::wire::frames::Framing;

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message: Option<Piece>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    logprobs: Option<Vec<Value>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
}

impl Line {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(bytes)
            .map_err(|error| DecodeError::Malformed(format!("a line is no answer ({error})")))
    }

    fn usage(&self) -> Option<Usage> {
        if self.prompt_eval_count.is_none() && self.eval_count.is_none() {
            return None;
        }
        Some(Usage {
            // Older versions leave it out when they had read the whole prompt before.
            prompt_tokens: self.prompt_eval_count.unwrap_or(0),
            completion_tokens: self.eval_count.unwrap_or(0),
            cached_tokens: None,
        })
    }
}

/// Reads one stream.
#[derive(Debug)]
pub struct Lines {
    /// How many calls the answer has made.
    calls: u32,
    probabilities: Probabilities,
}

/// Whether the caller gets the token probabilities that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probabilities {
    NotAsked,
    Awaited,
    Seen,
}

impl Lines {
    pub fn new(request: &GenerateRequest) -> Self {
        Lines {
            calls: 0,
            probabilities: if request.sampling.logprobs {
                Probabilities::Awaited
            } else {
                Probabilities::NotAsked
            },
        }
    }

    fn line(&mut self, line: Line, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Some(error) = &line.error {
            let complaint = Complaint::of(error);
            return Err(DecodeError::Reported {
                message: complaint.message.unwrap_or_else(|| error.to_string()),
                status: complaint.status,
            });
        }
        if line.message.is_none() && !line.done {
            return Err(DecodeError::Malformed("a line has neither a message nor an end".to_owned()));
        }
        let usage = line.usage();
        if let Some(piece) = line.message {
            self.piece(piece, line.logprobs, deltas)?;
        }
        if line.done {
            // Ollama calls it a stop when the model stopped to call tools.
            let reason = match line.done_reason.as_deref() {
                _ if self.calls > 0 => FinishReason::ToolCalls,
                None => FinishReason::Stop,
                Some(word) => FinishReason::parse(word),
            };
            deltas.push_back(Delta::Finish { choice: 0, reason });
            deltas.push_back(Delta::Done { usage });
        }
        Ok(())
    }

    fn piece(
        &mut self,
        piece: Piece,
        logprobs: Option<Vec<Value>>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), DecodeError> {
        if let Some(text) = piece.thinking.filter(|text| !text.is_empty()) {
            deltas.push_back(Delta::Reasoning { choice: 0, text });
        }
        let text = piece.content.unwrap_or_default();
        let logprobs = logprobs.filter(|tokens| !tokens.is_empty()).map(probabilities);
        if logprobs.is_some() {
            self.probabilities = Probabilities::Seen;
        }
        // Versions that know of no probabilities answer without them and say nothing.
        if self.probabilities == Probabilities::Awaited && !text.is_empty() {
            return Err(DecodeError::Unsupported {
                field: "logprobs",
                hint: "this version of Ollama gives none; update it",
            });
        }
        if !text.is_empty() || logprobs.is_some() {
            deltas.push_back(Delta::Text(TextDelta { choice: 0, text, logprobs: logprobs.map(Box::new) }));
        }
        for call in piece.tool_calls.into_iter().flatten() {
            let call = call.into_tool_call();
            deltas.push_back(Delta::ToolCall(ToolCallDelta {
                choice: 0,
                index: self.calls,
                id: Some(call.id),
                name: Some(call.name),
                arguments: call.arguments,
            }));
            self.calls += 1;
        }
        Ok(())
    }
}

/// Probabilities in the chat-completions form, whose readers count on every field.
fn probabilities(mut tokens: Vec<Value>) -> Value {
    for token in &mut tokens {
        if let Value::Object(fields) = token {
            fields.entry("bytes").or_insert(Value::Null);
            fields.entry("top_logprobs").or_insert_with(|| json!([]));
        }
    }
    json!({ "content": tokens })
}

impl Decoder for Lines {
    const FRAMING: Framing = Framing::Lines;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        self.line(Line::read(frame)?, deltas)
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        Err(DecodeError::Incomplete)
    }
}

/// Reads a whole answer, which is a stream of one line.
pub fn read_whole(body: &[u8], request: &GenerateRequest) -> Result<Generation, DecodeError> {
    let mut line = Line::read(body)?;
    let model = line.model.take().unwrap_or_else(|| request.model.clone());
    let mut deltas = VecDeque::new();
    Lines::new(request).line(line, &mut deltas)?;
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    collector.finish(model).ok_or(DecodeError::Incomplete)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
