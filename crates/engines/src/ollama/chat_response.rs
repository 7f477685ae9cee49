//! Responses of `POST /api/chat` and `POST /api/generate`: one JSON object for a complete answer, one object per line for a stream.

use std::collections::VecDeque;
use std::time::Duration;

use hob_core::{
    Collector, Delta, FinishReason, GenerateRequest, Generation, TextDelta, ToolCallDelta, Usage,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::forced_tool_call::{ForcedCall, WrittenCall};
use crate::openai_compat::tool_calls::WireCall;
use crate::openai_compat::tool_calls::new_call_id;
use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::stream_decoder::{DecodeError, Decoder};
use crate::wire::token_count;

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message: Option<Piece>,
    /// In the place of `message` in the answer to `/api/generate`.
    #[serde(default)]
    response: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default, deserialize_with = "token_count::optional")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    eval_count: Option<u64>,
    /// In nanoseconds.
    #[serde(default, deserialize_with = "token_count::optional")]
    load_duration: Option<u64>,
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
            .map_err(|error| DecodeError::unreadable(bytes, format!("invalid line in the stream ({error})")))
    }

    fn usage(&self) -> Option<Usage> {
        if self.prompt_eval_count.is_none() && self.eval_count.is_none() {
            return None;
        }
        Some(Usage {
            // Older versions omit it when the whole prompt was cached.
            prompt_tokens: self.prompt_eval_count.unwrap_or(0),
            completion_tokens: self.eval_count.unwrap_or(0),
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: self.load_duration.map(Duration::from_nanos),
        })
    }
}

/// The longest tool call that a model may write as text.
const MAX_WRITTEN_CALL_BYTES: usize = 16 << 20;

/// Decodes one stream.
#[derive(Debug)]
pub struct OllamaDecoder {
    /// The number of tool calls so far.
    calls: u32,
    /// Whether calls after the first are dropped.
    one_call: bool,
    written: Written,
    probabilities: Probabilities,
}

/// What the text of the answer is.
#[derive(Debug)]
enum Written {
    Text,
    /// The arguments of this tool, which the caller forces, as far as they have arrived.
    Arguments {
        name: String,
        so_far: String,
    },
    /// A call with its name, as far as it has arrived.
    Call {
        so_far: String,
    },
}

/// Whether the token probabilities that the caller requested have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probabilities {
    NotAsked,
    Awaited,
    Seen,
}

impl OllamaDecoder {
    pub fn new(request: &GenerateRequest) -> Self {
        OllamaDecoder {
            calls: 0,
            one_call: request.parallel_tool_calls == Some(false),
            // A request whose tools do not match its choice fails before it is sent.
            written: match ForcedCall::demanded(request).ok().flatten() {
                None => Written::Text,
                Some(ForcedCall::Of(tool)) => {
                    Written::Arguments { name: tool.name.clone(), so_far: String::new() }
                }
                Some(ForcedCall::AnyOf(_)) => Written::Call { so_far: String::new() },
            },
            probabilities: if request.sampling.logprobs {
                Probabilities::Awaited
            } else {
                Probabilities::NotAsked
            },
        }
    }

    fn line(&mut self, mut line: Line, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Some(error) = &line.error {
            return Err(DecodeError::reported(EngineErrorBody::of(error)));
        }
        if let Some(response) = line.response.take() {
            let thinking = line.thinking.take();
            line.message = Some(Piece { content: Some(response), thinking, tool_calls: None });
        }
        if line.message.is_none() && !line.done {
            return Err(DecodeError::Malformed("a line has neither 'message' nor 'done'".to_owned()));
        }
        let usage = line.usage();
        if let Some(piece) = line.message {
            self.piece(piece, line.logprobs, deltas)?;
        }
        if line.done {
            let was_cut = line.done_reason.as_deref() == Some("length");
            self.finish_written(was_cut, deltas)?;
            // Ollama reports `stop` when the model stopped to call tools.
            let reason = match line.done_reason.as_deref() {
                Some(_) if was_cut && !matches!(self.written, Written::Text) => FinishReason::Length,
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
        // Older versions silently omit the probabilities.
        if self.probabilities == Probabilities::Awaited && !text.is_empty() {
            return Err(DecodeError::Unsupported {
                field: "logprobs",
                hint: "this version of Ollama returns no log probabilities; update Ollama",
            });
        }
        self.text(text, logprobs, deltas)?;
        for call in piece.tool_calls.into_iter().flatten() {
            if self.one_call && self.calls > 0 {
                break;
            }
            let call = call.into_tool_call();
            self.begin_call(call.id, call.name, call.arguments, deltas);
        }
        Ok(())
    }

    /// A fragment of the model's text, which is a call if the caller forces one.
    fn text(
        &mut self,
        text: String,
        logprobs: Option<Value>,
        deltas: &mut VecDeque<Delta>,
    ) -> Result<(), DecodeError> {
        match &mut self.written {
            Written::Text if text.is_empty() && logprobs.is_none() => {}
            Written::Text => {
                deltas.push_back(Delta::Text(TextDelta {
                    choice: 0,
                    text,
                    logprobs: logprobs.map(Box::new),
                }));
            }
            _ if text.is_empty() => {}
            Written::Arguments { so_far, .. } | Written::Call { so_far }
                if so_far.len() + text.len() > MAX_WRITTEN_CALL_BYTES =>
            {
                return Err(DecodeError::Malformed("the tool call is too long".to_owned()));
            }
            Written::Arguments { name, so_far } if self.calls == 0 => {
                so_far.push_str(&text);
                let name = name.clone();
                self.begin_call(new_call_id(), name, text, deltas);
            }
            Written::Arguments { so_far, .. } => {
                so_far.push_str(&text);
                deltas.push_back(Delta::ToolCall(ToolCallDelta {
                    arguments: text,
                    ..ToolCallDelta::default()
                }));
            }
            Written::Call { so_far } => so_far.push_str(&text),
        }
        Ok(())
    }

    /// The end of the model's text. A call that was cut off is passed on unchanged, with the finish reason `length`.
    fn finish_written(&mut self, was_cut: bool, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Written::Arguments { so_far, .. } = &self.written
            && self.calls > 0
            && !was_cut
            && serde_json::from_str::<Map<String, Value>>(so_far).is_err()
        {
            return Err(DecodeError::Malformed("the forced tool call is not a JSON object".to_owned()));
        }
        if matches!(self.written, Written::Text) || self.calls > 0 {
            return Ok(());
        }
        let so_far = match &mut self.written {
            Written::Call { so_far } => std::mem::take(so_far),
            Written::Text | Written::Arguments { .. } => String::new(),
        };
        match serde_json::from_str::<WrittenCall>(&so_far) {
            Ok(WrittenCall { name, arguments }) => {
                self.begin_call(new_call_id(), name, Value::Object(arguments).to_string(), deltas);
                Ok(())
            }
            Err(_) if was_cut => {
                if !so_far.is_empty() {
                    deltas.push_back(Delta::text(so_far));
                }
                Ok(())
            }
            Err(_) => Err(DecodeError::Malformed("the model did not make the forced tool call".to_owned())),
        }
    }

    fn begin_call(&mut self, id: String, name: String, arguments: String, deltas: &mut VecDeque<Delta>) {
        deltas.push_back(Delta::ToolCall(ToolCallDelta {
            choice: 0,
            index: self.calls,
            id: Some(id),
            name: Some(name),
            arguments,
        }));
        self.calls += 1;
    }
}

/// Probabilities in the chat-completions format, whose readers expect every field.
fn probabilities(mut tokens: Vec<Value>) -> Value {
    for token in &mut tokens {
        if let Value::Object(fields) = token {
            fields.entry("bytes").or_insert(Value::Null);
            fields.entry("top_logprobs").or_insert_with(|| json!([]));
        }
    }
    json!({ "content": tokens })
}

impl Decoder for OllamaDecoder {
    const FRAMING: Framing = Framing::Lines;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        self.line(Line::read(frame)?, deltas)
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        Err(DecodeError::Incomplete)
    }
}

/// Reads a complete answer, which has the format of a stream with one line.
pub fn read_whole(body: &[u8], request: &GenerateRequest) -> Result<Generation, DecodeError> {
    let mut line = Line::read(body)?;
    let model = line.model.take().unwrap_or_else(|| request.model.clone());
    let mut deltas = VecDeque::new();
    OllamaDecoder::new(request).line(line, &mut deltas)?;
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    collector.finish(model).ok_or(DecodeError::Incomplete)
}

#[cfg(test)]
#[path = "chat_response_tests.rs"]
mod tests;
