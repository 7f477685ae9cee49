//! A streamed response as server-sent events, each with its sequence number: the response, its items with their pieces, and the
//! response again when it has ended.
//!
//! The constant part of the events of an item is rendered once; of a piece only its text is escaped, and it is escaped once.

use hob_core::{Delta, EngineError, FinishReason, Generation, TextDelta, ToolCallDelta, Usage};

use super::custom_tools;
use super::input::sealed;
use super::object::{Finished, Progress, ResponseObject, Status};
use super::output::{
    ItemBody, ItemStatus, ItemType, OutputForm, OutputItem, escaped, push_logprobs, push_text_part,
    push_typed_text,
};
use crate::answer::stream::StreamEncoder;
use crate::error::ApiError;
use crate::json::push_json;
use crate::unix_time::unix_now;

/// The sequence of events of one response.
pub(super) struct ResponseEvents {
    object: ResponseObject,
    form: OutputForm,
    /// A response in the background waits before it begins.
    is_queued: bool,
    sequence: u64,
    has_begun: bool,
    output: Vec<OutputItem>,
    open: Option<OpenItem>,
    /// Calls of the engine that have become items.
    calls: Vec<u32>,
    reason: Option<FinishReason>,
    finished: Option<Finished>,
    has_ended: bool,
}

/// An item that is being written.
struct OpenItem {
    id: String,
    kind: OpenKind,
    /// `"item_id":…,"output_index":…`
    place: Vec<u8>,
    /// The beginning of an event with a piece of it, up to the piece.
    delta_head: Vec<u8>,
    /// A JSON string without its quotes.
    text: Vec<u8>,
    /// The same as it is, where it is needed.
    raw: String,
    /// Elements of an array.
    logprobs: Vec<u8>,
}

#[derive(PartialEq, Eq)]
enum OpenKind {
    Message,
    Reasoning,
    Call { index: u32, id: String, name: String, is_custom: bool },
}

impl OpenKind {
    fn item_type(&self) -> ItemType {
        match self {
            OpenKind::Message => ItemType::Message,
            OpenKind::Reasoning => ItemType::Reasoning,
            OpenKind::Call { is_custom: false, .. } => ItemType::FunctionCall,
            OpenKind::Call { is_custom: true, .. } => ItemType::CustomCall,
        }
    }
}

const TEXT_DELTA: &str = "response.output_text.delta";
const REASONING_DELTA: &str = "response.reasoning_text.delta";
const SUMMARY_DELTA: &str = "response.reasoning_summary_text.delta";
const ARGUMENTS_DELTA: &str = "response.function_call_arguments.delta";
const INPUT_DELTA: &str = "response.custom_tool_call_input.delta";

impl ResponseEvents {
    pub(super) fn new(object: ResponseObject, form: OutputForm) -> Self {
        ResponseEvents {
            object,
            form,
            is_queued: false,
            sequence: 0,
            has_begun: false,
            output: Vec::new(),
            open: None,
            calls: Vec::new(),
            reason: None,
            finished: None,
            has_ended: false,
        }
    }

    /// The same for a response that waits in the background.
    pub(super) fn queued(self) -> Self {
        ResponseEvents { is_queued: true, ..self }
    }

    /// The model that answers, where it is known only after the first events.
    pub(super) fn answered_by(&mut self, model: &str) {
        self.object.set_model(model);
    }

    /// The response before it begins.
    pub(super) fn queued_body(&self) -> Vec<u8> {
        self.object.render(Status::Queued, &Progress::default())
    }

    /// The response while it is written.
    pub(super) fn in_progress_body(&self) -> Vec<u8> {
        self.object.render(Status::InProgress, &Progress::default())
    }

    /// Ends with a whole answer, for a caller who reads no events.
    pub(super) fn finish_whole(&mut self, generation: &Generation) {
        self.has_ended = true;
        self.finished = Some(self.object.finish(generation, &self.form, unix_now()));
    }

    /// The response, once it has ended.
    pub(super) fn take_finished(&mut self) -> Option<Finished> {
        self.finished.take()
    }

    /// The first events. The others begin with them by themselves.
    pub(super) fn announce(&mut self, out: &mut Vec<u8>) {
        let status = if self.is_queued { Status::Queued } else { Status::InProgress };
        self.push_response("response.created", status, &Progress::default(), out);
        if self.is_queued {
            self.push_response("response.queued", status, &Progress::default(), out);
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        if self.sequence == 0 {
            self.announce(out);
        }
        self.push_response("response.in_progress", Status::InProgress, &Progress::default(), out);
    }

    fn push_response(&mut self, event: &str, status: Status, progress: &Progress<'_>, out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.extend_from_slice(b",\"response\":");
        self.object.push(out, status, progress);
        self.push_event_end(out);
    }

    fn push_event_end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"sequence_number\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.sequence).as_bytes());
        out.extend_from_slice(b"}\n\n");
        self.sequence += 1;
    }

    /// An event about an open item, with further fields.
    fn push_item_event(&mut self, event: &str, item: &OpenItem, fields: &[&[u8]], out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.push(b',');
        out.extend_from_slice(&item.place);
        for field in fields {
            out.extend_from_slice(field);
        }
        self.push_event_end(out);
    }

    /// The event that an item has begun or ended.
    fn push_whole_item(&mut self, event: &str, index: usize, json: &[u8], out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.extend_from_slice(b",\"output_index\":");
        out.extend_from_slice(itoa::Buffer::new().format(index).as_bytes());
        out.extend_from_slice(b",\"item\":");
        out.extend_from_slice(json);
        self.push_event_end(out);
    }

    /// Begins an item, after the one before it has ended.
    fn open(&mut self, kind: OpenKind, out: &mut Vec<u8>) {
        self.close(ItemStatus::Completed, out);
        let index = self.output.len();
        let id = kind.item_type().id(self.object.suffix(), index);
        let mut place = b"\"item_id\":".to_vec();
        push_json(&mut place, &id);
        place.extend_from_slice(b",\"output_index\":");
        push_json(&mut place, &index);
        let (event, position) = match &kind {
            OpenKind::Message => (TEXT_DELTA, ",\"content_index\":0"),
            OpenKind::Reasoning if self.form.summarizes_reasoning => (SUMMARY_DELTA, ",\"summary_index\":0"),
            OpenKind::Reasoning => (REASONING_DELTA, ",\"content_index\":0"),
            OpenKind::Call { is_custom: false, .. } => (ARGUMENTS_DELTA, ""),
            OpenKind::Call { is_custom: true, .. } => (INPUT_DELTA, ""),
        };
        let mut delta_head = Vec::with_capacity(192);
        push_event_head(event, &mut delta_head);
        delta_head.push(b',');
        delta_head.extend_from_slice(&place);
        delta_head.extend_from_slice(position.as_bytes());
        delta_head.extend_from_slice(b",\"delta\":");
        let item = OpenItem {
            id,
            kind,
            place,
            delta_head,
            text: Vec::new(),
            raw: String::new(),
            logprobs: Vec::new(),
        };
        let mut json = Vec::with_capacity(192);
        item.body(&self.form, None).push(&mut json, &item.id, ItemStatus::InProgress);
        self.push_whole_item("response.output_item.added", index, &json, out);
        match &item.kind {
            OpenKind::Message => {
                let mut part = b",\"content_index\":0,\"part\":".to_vec();
                push_text_part(&mut part, b"", b"");
                self.push_item_event("response.content_part.added", &item, &[&part], out);
            }
            OpenKind::Reasoning if self.form.summarizes_reasoning => {
                let mut part = b",\"summary_index\":0,\"part\":".to_vec();
                push_typed_text(&mut part, "summary_text", b"");
                self.push_item_event("response.reasoning_summary_part.added", &item, &[&part], out);
            }
            OpenKind::Reasoning => {
                let mut part = b",\"content_index\":0,\"part\":".to_vec();
                push_typed_text(&mut part, "reasoning_text", b"");
                self.push_item_event("response.content_part.added", &item, &[&part], out);
            }
            OpenKind::Call { .. } => {}
        }
        self.open = Some(item);
    }

    /// Ends the open item, if there is one.
    fn close(&mut self, status: ItemStatus, out: &mut Vec<u8>) {
        let Some(mut item) = self.open.take() else { return };
        match &item.kind {
            OpenKind::Message => {
                let fields: [&[u8]; 5] = [
                    b",\"content_index\":0,\"text\":\"",
                    &item.text,
                    b"\",\"logprobs\":[",
                    &item.logprobs,
                    b"]",
                ];
                self.push_item_event("response.output_text.done", &item, &fields, out);
                let mut part = b",\"content_index\":0,\"part\":".to_vec();
                push_text_part(&mut part, &item.text, &item.logprobs);
                self.push_item_event("response.content_part.done", &item, &[&part], out);
            }
            OpenKind::Reasoning if self.form.summarizes_reasoning => {
                let fields: [&[u8]; 3] = [b",\"summary_index\":0,\"text\":\"", &item.text, b"\""];
                self.push_item_event("response.reasoning_summary_text.done", &item, &fields, out);
                let mut part = b",\"summary_index\":0,\"part\":".to_vec();
                push_typed_text(&mut part, "summary_text", &item.text);
                self.push_item_event("response.reasoning_summary_part.done", &item, &[&part], out);
            }
            OpenKind::Reasoning => {
                let fields: [&[u8]; 3] = [b",\"content_index\":0,\"text\":\"", &item.text, b"\""];
                self.push_item_event("response.reasoning_text.done", &item, &fields, out);
                let mut part = b",\"content_index\":0,\"part\":".to_vec();
                push_typed_text(&mut part, "reasoning_text", &item.text);
                self.push_item_event("response.content_part.done", &item, &[&part], out);
            }
            OpenKind::Call { is_custom: false, name, .. } => {
                let mut fields = b",\"name\":".to_vec();
                push_json(&mut fields, name);
                fields.extend_from_slice(b",\"arguments\":\"");
                let fields: [&[u8]; 3] = [&fields, &item.text, b"\""];
                self.push_item_event("response.function_call_arguments.done", &item, &fields, out);
            }
            // The text is inside of JSON until that is complete.
            OpenKind::Call { is_custom: true, .. } => {
                item.text = escaped(&custom_tools::input(&item.raw));
                out.extend_from_slice(&item.delta_head);
                out.push(b'"');
                out.extend_from_slice(&item.text);
                out.push(b'"');
                self.push_event_end(out);
                let fields: [&[u8]; 3] = [b",\"input\":\"", &item.text, b"\""];
                self.push_item_event("response.custom_tool_call_input.done", &item, &fields, out);
            }
        }
        let is_sealed = item.kind == OpenKind::Reasoning && self.form.seals_reasoning;
        let seal = is_sealed.then(|| sealed(&item.raw));
        let mut json = Vec::with_capacity(192 + item.text.len());
        item.body(&self.form, seal.as_deref()).push(&mut json, &item.id, status);
        self.push_whole_item("response.output_item.done", self.output.len(), &json, out);
        self.output.push(OutputItem { id: item.id, json });
    }

    fn text(&mut self, piece: &TextDelta, out: &mut Vec<u8>) {
        if !self.open.as_ref().is_some_and(|item| item.kind == OpenKind::Message) {
            self.open(OpenKind::Message, out);
        }
        let Some(item) = &mut self.open else { return };
        item.push_piece(&piece.text, out);
        out.extend_from_slice(b",\"logprobs\":[");
        if let Some(logprobs) = &piece.logprobs {
            let mut tokens = Vec::new();
            push_logprobs(&mut tokens, logprobs);
            out.extend_from_slice(&tokens);
            if !item.logprobs.is_empty() && !tokens.is_empty() {
                item.logprobs.push(b',');
            }
            item.logprobs.extend_from_slice(&tokens);
        }
        out.push(b']');
        self.push_event_end(out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        if !self.open.as_ref().is_some_and(|item| item.kind == OpenKind::Reasoning) {
            self.open(OpenKind::Reasoning, out);
        }
        let Some(item) = &mut self.open else { return };
        if self.form.seals_reasoning {
            item.raw.push_str(text);
        }
        item.push_piece(text, out);
        self.push_event_end(out);
    }

    fn call(&mut self, piece: &ToolCallDelta, out: &mut Vec<u8>) {
        let is_open = self
            .open
            .as_ref()
            .is_some_and(|item| matches!(&item.kind, OpenKind::Call { index, .. } if *index == piece.index));
        if !is_open {
            if self.calls.contains(&piece.index) {
                if !piece.arguments.is_empty() {
                    let reason = "it mixed the pieces of two tool calls".to_owned();
                    let error = EngineError::Malformed { engine: "the engine".to_owned(), reason };
                    self.fail(&error.into(), out);
                }
                return;
            }
            self.calls.push(piece.index);
            let name = piece.name.clone().unwrap_or_default();
            let id = piece.id.clone().unwrap_or_else(|| crate::answer::new_id("call_"));
            let is_custom = self.form.custom.contains(&name);
            self.open(OpenKind::Call { index: piece.index, id, name, is_custom }, out);
        }
        let Some(item) = &mut self.open else { return };
        if piece.arguments.is_empty() {
            return;
        }
        if item.kind.item_type() == ItemType::CustomCall {
            item.raw.push_str(&piece.arguments);
            return;
        }
        item.push_piece(&piece.arguments, out);
        self.push_event_end(out);
    }

    fn done(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        // An empty answer is an empty message.
        if self.output.is_empty() && self.open.is_none() {
            self.open(OpenKind::Message, out);
        }
        let reason = self.reason.take();
        self.close(ItemStatus::after(reason.as_ref()), out);
        let status = Status::after(reason.as_ref());
        let event = match status {
            Status::Incomplete => "response.incomplete",
            _ => "response.completed",
        };
        let output = std::mem::take(&mut self.output);
        let progress = Progress {
            output: &output,
            usage: Some(usage.unwrap_or_default()),
            reason: reason.as_ref(),
            completed_at: Some(unix_now()),
            ..Progress::default()
        };
        self.end_with(event, status, &progress, out);
    }

    fn end_with(&mut self, event: &str, status: Status, progress: &Progress<'_>, out: &mut Vec<u8>) {
        let body = self.object.render(status, progress);
        push_event_head(event, out);
        out.extend_from_slice(b",\"response\":");
        out.extend_from_slice(&body);
        self.push_event_end(out);
        self.has_ended = true;
        self.finished = Some(Finished { status, body, output: progress.output.to_vec() });
    }

    /// Ends a response that its caller cancelled. The API has no event for it, so this is an error.
    pub(super) fn cancel(&mut self, out: &mut Vec<u8>) {
        let error = ApiError::response_cancelled();
        self.push_error(&error, out);
        let progress = Progress { output: &self.output, ..Progress::default() };
        let body = self.object.render(Status::Cancelled, &progress);
        self.has_ended = true;
        self.finished =
            Some(Finished { status: Status::Cancelled, body, output: std::mem::take(&mut self.output) });
    }

    fn push_error(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        push_error_event(error, self.sequence, out);
        self.sequence += 1;
    }
}

impl OpenItem {
    fn body<'a>(&'a self, form: &OutputForm, sealed: Option<&'a str>) -> ItemBody<'a> {
        let text = self.text.as_slice();
        match &self.kind {
            OpenKind::Message => ItemBody::Message { text, logprobs: &self.logprobs },
            OpenKind::Reasoning => {
                ItemBody::Reasoning { text, sealed, summarizes: form.summarizes_reasoning }
            }
            OpenKind::Call { id, name, is_custom: false, .. } => {
                ItemBody::FunctionCall { call: id, name, arguments: text }
            }
            OpenKind::Call { id, name, is_custom: true, .. } => {
                ItemBody::CustomCall { call: id, name, input: text }
            }
        }
    }

    /// Begins an event with a piece of text, which it also adds to the text of the item.
    fn push_piece(&mut self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.delta_head);
        let start = out.len();
        push_json(out, text);
        let escaped = out.get(start + 1..out.len().saturating_sub(1)).unwrap_or_default();
        self.text.extend_from_slice(escaped);
    }
}

fn push_event_head(event: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: {\"type\":\"");
    out.extend_from_slice(event.as_bytes());
    out.push(b'"');
}

/// Appends the event `error`, for a stream without a response.
pub(super) fn push_error_event(error: &ApiError, sequence: u64, out: &mut Vec<u8>) {
    push_event_head("error", out);
    out.extend_from_slice(b",\"code\":");
    push_json(out, &error.code());
    out.extend_from_slice(b",\"message\":");
    push_json(out, error.message());
    out.extend_from_slice(b",\"param\":null,\"sequence_number\":");
    push_json(out, &sequence);
    out.extend_from_slice(b"}\n\n");
}

impl StreamEncoder for ResponseEvents {
    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        self.begin(out);
        match delta {
            Delta::Text(piece) if piece.text.is_empty() && piece.logprobs.is_none() => {}
            Delta::Text(piece) => self.text(piece, out),
            Delta::ReasoningSeal { .. } => {}
            Delta::Reasoning { text, .. } if text.is_empty() => {}
            Delta::Reasoning { text, .. } => self.reasoning(text, out),
            Delta::ToolCall(piece) => self.call(piece, out),
            // A comment: clients of the API ignore it, and people can read it.
            Delta::Step(step) => {
                out.extend_from_slice(b": hob ");
                out.extend_from_slice(step.name.as_bytes());
                out.push(b' ');
                push_json(out, &step.data);
                out.extend_from_slice(b"\n\n");
            }
            Delta::Finish { reason, .. } => self.reason = Some(reason.clone()),
            Delta::Done { usage } => self.done(*usage, out),
        }
    }

    /// The item that was being written does not end.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        self.begin(out);
        let output = std::mem::take(&mut self.output);
        let progress = Progress { output: &output, error: Some(error), ..Progress::default() };
        self.end_with("response.failed", Status::Failed, &progress, out);
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
