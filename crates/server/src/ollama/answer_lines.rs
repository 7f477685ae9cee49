//! Answers as Ollama writes them: a stream of one object per line, or one object.
//!
//! The constant part of a line is rendered once for a stream; for a piece only its text is escaped. A call of a tool is one line, at
//! the end of the answer: until then an engine can add to the arguments of any call.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hob_core::{Answer, Delta, FinishReason, Generation, TextDelta, ToolCall, ToolCallDelta, Usage};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::settings::Thoughts;
use super::timestamp;
use crate::answer::stream::StreamEncoder;
use crate::error::{ApiError, ErrorFormat};
use crate::json::push_json;

/// The two forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormKind {
    /// `message`
    Chat,
    /// `response`
    Generate,
}

/// How an answer is written.
#[derive(Debug, Clone)]
pub(super) struct AnswerForm {
    pub(super) kind: FormKind,
    pub(super) thoughts: Thoughts,
    /// When the request came.
    pub(super) started: Instant,
    /// The model as the caller named it.
    pub(super) requested: String,
    /// The same as Hob lists it.
    pub(super) meant: String,
}

/// How long the parts of an answer took. The time in which the model was loaded is part of the first.
#[derive(Debug, Clone, Copy, Default)]
struct AnswerTimes {
    /// Until the first piece.
    prompt: Duration,
    /// From there to the end.
    answer: Duration,
}

/// The words of an answer, or of a piece of one.
#[derive(Debug, Default, Serialize)]
struct Words<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
}

#[derive(Debug, Serialize)]
struct WireCall {
    id: String,
    function: WireFunction,
}

#[derive(Debug, Serialize)]
struct WireFunction {
    index: u32,
    name: String,
    arguments: Map<String, Value>,
}

impl WireCall {
    /// A call whose arguments are an object; otherwise what the model wrote, as text.
    fn read(index: u32, call: &ToolCall) -> Result<Self, String> {
        let arguments = match call.arguments.trim() {
            // Many models write nothing for a tool without parameters.
            "" => Ok(Map::new()),
            arguments => serde_json::from_str(arguments),
        };
        match arguments {
            Ok(arguments) => {
                let function = WireFunction { index, name: call.name.clone(), arguments };
                Ok(WireCall { id: call.id.clone(), function })
            }
            // Ollama returns a call that it cannot read as text, too.
            Err(_) => Err(format!("{{\"name\":{},\"arguments\":{}}}", json!(call.name), call.arguments)),
        }
    }
}

impl AnswerForm {
    /// The beginning of every object, up to the time.
    fn head(&self, model: &str) -> Vec<u8> {
        // Clients compare the name with the one that they sent.
        let model = if model == self.meant { &self.requested } else { model };
        let mut head = Vec::with_capacity(48 + model.len());
        head.extend_from_slice(b"{\"model\":");
        push_json(&mut head, model);
        head.extend_from_slice(b",\"created_at\":\"");
        head
    }

    /// An answer that was not streamed.
    pub(super) fn whole(&self, generation: &Generation, body: &mut Vec<u8>) {
        let Answer { content, reasoning, tool_calls, finish_reason, logprobs, .. } = &generation.answer;
        let mut words = Words {
            role: "assistant",
            thinking: reasoning.as_deref().filter(|_| self.thoughts == Thoughts::Shown),
            ..Words::default()
        };
        let mut unread = String::new();
        for (index, call) in (0..).zip(tool_calls) {
            match WireCall::read(index, call) {
                Ok(call) => words.tool_calls.push(call),
                Err(text) => unread.push_str(&text),
            }
        }
        let text = format!("{content}{unread}");
        words.content = &text;
        body.extend_from_slice(&self.head(&generation.model));
        push_time(body);
        self.push_words(&words, body);
        push_logprobs(logprobs.as_ref(), body);
        let times = AnswerTimes { prompt: Duration::ZERO, answer: self.started.elapsed() };
        push_end(finish_reason, times, generation.usage, body);
        body.push(b'}');
    }

    /// The answer to a request that only loads or unloads a model.
    pub(super) fn without_words(&self, reason: &str) -> Vec<u8> {
        let mut body = self.head(&self.meant);
        push_time(&mut body);
        self.push_words(&Words { role: "assistant", ..Words::default() }, &mut body);
        body.extend_from_slice(b",\"done\":true,\"done_reason\":");
        push_json(&mut body, reason);
        body.push(b'}');
        body
    }

    fn push_words(&self, words: &Words<'_>, out: &mut Vec<u8>) {
        match self.kind {
            FormKind::Chat => {
                out.extend_from_slice(b"\"message\":");
                push_json(out, words);
            }
            FormKind::Generate => {
                out.extend_from_slice(b"\"response\":");
                push_json(out, words.content);
                if let Some(thinking) = words.thinking {
                    out.extend_from_slice(b",\"thinking\":");
                    push_json(out, thinking);
                }
                if !words.tool_calls.is_empty() {
                    out.extend_from_slice(b",\"tool_calls\":");
                    push_json(out, &words.tool_calls);
                }
            }
        }
    }
}

/// The lines of one stream.
pub(super) struct AnswerLines {
    form: AnswerForm,
    head: Vec<u8>,
    /// When the first piece came.
    answering: Instant,
    /// The calls so far, by their index.
    calls: BTreeMap<u32, ToolCall>,
    reason: FinishReason,
}

impl AnswerLines {
    pub(super) fn new(form: AnswerForm) -> Self {
        let head = form.head(&form.meant);
        AnswerLines {
            form,
            head,
            answering: Instant::now(),
            calls: BTreeMap::new(),
            reason: FinishReason::Stop,
        }
    }

    fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        push_time(out);
    }

    fn line(&self, words: Words<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        self.form.push_words(&Words { role: "assistant", ..words }, out);
        out.extend_from_slice(b",\"done\":false}\n");
    }

    fn text(&self, TextDelta { text, logprobs, .. }: &TextDelta, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(match self.form.kind {
            FormKind::Chat => b"\"message\":{\"role\":\"assistant\",\"content\":".as_slice(),
            FormKind::Generate => b"\"response\":",
        });
        push_json(out, text);
        if self.form.kind == FormKind::Chat {
            out.push(b'}');
        }
        push_logprobs(logprobs.as_deref(), out);
        out.extend_from_slice(b",\"done\":false}\n");
    }

    fn call_piece(&mut self, piece: &ToolCallDelta) {
        let call = self.calls.entry(piece.index).or_insert_with(|| ToolCall {
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
        });
        if let Some(id) = &piece.id {
            call.id.clone_from(id);
        }
        if let Some(name) = &piece.name {
            call.name.clone_from(name);
        }
        call.arguments.push_str(&piece.arguments);
    }

    fn finish_calls(&mut self, out: &mut Vec<u8>) {
        for (index, call) in std::mem::take(&mut self.calls) {
            match WireCall::read(index, &call) {
                Ok(call) => self.line(Words { tool_calls: vec![call], ..Words::default() }, out),
                Err(text) => self.line(Words { content: &text, ..Words::default() }, out),
            }
        }
    }
}

impl StreamEncoder for AnswerLines {
    const CONTENT_TYPE: &'static str = "application/x-ndjson";

    fn answered_by(&mut self, model: &str) {
        self.head = self.form.head(model);
        self.answering = Instant::now();
    }

    /// A line without words: clients read every line as JSON, so it cannot be empty.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.line(Words::default(), out);
    }

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(piece) => self.text(piece, out),
            Delta::Reasoning { text, .. } => {
                if self.form.thoughts == Thoughts::Shown {
                    self.line(Words { thinking: Some(text), ..Words::default() }, out);
                }
            }
            // The API has no field for it.
            Delta::ReasoningSeal { .. } => {}
            Delta::ToolCall(piece) => self.call_piece(piece),
            // A line without words: clients of Ollama ignore a field that they do not know.
            Delta::Step(step) => {
                self.begin(out);
                self.form.push_words(&Words { role: "assistant", ..Words::default() }, out);
                out.extend_from_slice(b",\"done\":false,\"hob_step\":");
                push_json(out, &json!({ "name": step.name, "data": step.data }));
                out.extend_from_slice(b"}\n");
            }
            Delta::Finish { reason, .. } => {
                self.finish_calls(out);
                self.reason = reason.clone();
            }
            Delta::Done { usage } => {
                self.begin(out);
                self.form.push_words(&Words { role: "assistant", ..Words::default() }, out);
                let prompt = self.answering.saturating_duration_since(self.form.started);
                let times = AnswerTimes { prompt, answer: self.answering.elapsed() };
                push_end(&self.reason, times, *usage, out);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    /// No line with `done` follows.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(&error.event(ErrorFormat::Ollama));
        out.push(b'\n');
    }
}

/// Appends the current time, and begins the next field.
fn push_time(out: &mut Vec<u8>) {
    timestamp::push_now(out);
    out.extend_from_slice(b"\",");
}

/// Appends the probabilities of tokens. Ollama has the list itself, chat completions an object around it.
fn push_logprobs(logprobs: Option<&Value>, out: &mut Vec<u8>) {
    if let Some(tokens) = logprobs.and_then(|logprobs| logprobs.get("content")) {
        out.extend_from_slice(b",\"logprobs\":");
        push_json(out, tokens);
    }
}

/// Appends why and how an answer ended. Counts are left out where the engine does not count.
fn push_end(reason: &FinishReason, times: AnswerTimes, usage: Option<Usage>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"done\":true,\"done_reason\":");
    push_json(
        out,
        match reason {
            // Ollama has no reason of its own for calls.
            FinishReason::ToolCalls => "stop",
            reason => reason.as_str(),
        },
    );
    let mut field = |name: &str, value: u128| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    };
    let load = usage.and_then(|usage| usage.load_time).unwrap_or_default();
    // A whole answer has no time until its first piece.
    let load_of_answer = load.saturating_sub(times.prompt);
    field("total_duration", (times.prompt + times.answer).as_nanos());
    field("load_duration", load.as_nanos());
    if let Some(usage) = usage {
        field("prompt_eval_count", usage.prompt_tokens.into());
    }
    field("prompt_eval_duration", times.prompt.saturating_sub(load).as_nanos());
    if let Some(usage) = usage {
        field("eval_count", usage.completion_tokens.into());
    }
    field("eval_duration", times.answer.saturating_sub(load_of_answer).as_nanos());
}

#[cfg(test)]
#[path = "answer_lines_tests.rs"]
mod tests;
