//! A streamed response as server-sent events, each with its sequence number: the response, its items with their pieces, and the
//! response again when it has ended.

use hob_core::{
    CONTEXT_LENGTH_EXCEEDED, Delta, EngineError, FinishReason, Generation, ReasoningSeal, SealedReasoning,
    TextDelta, ToolCallDelta, Usage,
};

use super::numbered_events::{EventNumbers, push_event_head};
use super::object::{Finished, Progress, ResponseObject, Status};
use super::open_item::{ItemEnding, OpenItem, OpenKind};
use super::output::{ItemStatus, OutputForm, OutputItem};
use crate::answer::stream::{StreamEncoder, push_step};
use crate::error::ApiError;
use crate::unix_time::unix_now;

/// The sequence of events of one response.
pub(super) struct ResponseEvents {
    pub(super) object: ResponseObject,
    form: OutputForm,
    /// The response is wanted when it has ended.
    is_kept: bool,
    numbers: EventNumbers,
    has_begun: bool,
    output: Vec<OutputItem>,
    open: Option<OpenItem>,
    /// Calls of the engine that have become items.
    calls: Vec<u32>,
    reason: Option<FinishReason>,
    finished: Option<Finished>,
    has_ended: bool,
}

impl ResponseEvents {
    pub(super) fn new(object: ResponseObject, form: OutputForm) -> Self {
        ResponseEvents {
            object,
            form,
            is_kept: false,
            numbers: EventNumbers::default(),
            has_begun: false,
            output: Vec::new(),
            open: None,
            calls: Vec::new(),
            reason: None,
            finished: None,
            has_ended: false,
        }
    }

    /// The same for a response that is stored: `take_finished` gives it.
    pub(super) fn kept(self) -> Self {
        ResponseEvents { is_kept: true, ..self }
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

    /// The first events of a response that waits in the background. Those of others are sent with the first piece.
    pub(super) fn announce(&mut self, queued_body: &[u8], out: &mut Vec<u8>) {
        self.push_response("response.created", queued_body, out);
        self.push_response("response.queued", queued_body, out);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        self.has_begun = true;
        let body = self.in_progress_body();
        if !self.numbers.have_begun() {
            self.push_response("response.created", &body, out);
        }
        self.push_response("response.in_progress", &body, out);
    }

    fn push_response(&mut self, event: &str, body: &[u8], out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.extend_from_slice(b",\"response\":");
        out.extend_from_slice(body);
        self.numbers.end(out);
    }

    /// Begins an item, after the one before it has ended.
    fn open(&mut self, kind: OpenKind, out: &mut Vec<u8>) {
        self.close(ItemStatus::Completed, None, out);
        let item = OpenItem::new(kind, self.object.suffix(), self.output.len());
        item.push_added(&mut self.numbers, out);
        self.open = Some(item);
    }

    /// Begins an item that has a part.
    fn open_with_part(&mut self, kind: OpenKind, out: &mut Vec<u8>) {
        self.open(kind, out);
        if let Some(item) = &self.open {
            item.push_part_added(&mut self.numbers, out);
        }
    }

    /// Ends the open item, if there is one. `block` is what a provider sealed of it.
    fn close(&mut self, status: ItemStatus, block: Option<&SealedReasoning>, out: &mut Vec<u8>) {
        let Some(item) = self.open.take() else { return };
        let ending = ItemEnding { status, block, seals_reasoning: self.form.seals_reasoning };
        self.output.push(item.end(ending, &mut self.numbers, out));
    }

    fn is_open(&self, is_it: impl FnOnce(&OpenKind) -> bool) -> bool {
        self.open.as_ref().is_some_and(|item| is_it(item.kind()))
    }

    fn text(&mut self, piece: &TextDelta, out: &mut Vec<u8>) {
        if !self.is_open(|kind| matches!(kind, OpenKind::Message)) {
            self.open_with_part(OpenKind::Message, out);
        }
        if let Some(item) = &mut self.open {
            item.push_text(piece, &mut self.numbers, out);
        }
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        if !self.is_open(|kind| matches!(kind, OpenKind::Reasoning { .. })) {
            let summarizes = self.form.summarizes_reasoning;
            self.open_with_part(OpenKind::Reasoning { summarizes }, out);
        }
        if let Some(item) = &mut self.open {
            item.push_thought(text, &mut self.numbers, out);
        }
    }

    /// Ends an item of reasoning with the seal of its provider. What the provider hides is an item without text.
    fn seal(&mut self, seal: &ReasoningSeal, out: &mut Vec<u8>) {
        let is_open = self.is_open(|kind| matches!(kind, OpenKind::Reasoning { .. }));
        if !is_open || matches!(seal, ReasoningSeal::Redacted(_)) {
            self.open(OpenKind::Reasoning { summarizes: self.form.summarizes_reasoning }, out);
        }
        let Some(item) = &mut self.open else { return };
        let block = match seal {
            ReasoningSeal::Signature(signature) => {
                SealedReasoning::Signed { text: item.take_thought(), signature: signature.clone() }
            }
            ReasoningSeal::Redacted(data) => SealedReasoning::Redacted { data: data.clone() },
        };
        self.close(ItemStatus::Completed, Some(&block), out);
    }

    fn call(&mut self, piece: &ToolCallDelta, out: &mut Vec<u8>) {
        if !self.is_open(|kind| matches!(kind, OpenKind::Call { index, .. } if *index == piece.index)) {
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
            let (namespace, name) = self.form.namespaces.split(&name);
            let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
            self.open(OpenKind::Call { index: piece.index, id, namespace, name, is_custom }, out);
        }
        let Some(item) = &mut self.open else { return };
        match item.kind() {
            OpenKind::Call { is_custom: true, .. } => item.hold(&piece.arguments),
            _ if piece.arguments.is_empty() => {}
            _ => item.push_piece(&piece.arguments, &mut self.numbers, out),
        }
    }

    fn done(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        // An empty answer is an empty message.
        if self.output.is_empty() && self.open.is_none() {
            self.open_with_part(OpenKind::Message, out);
        }
        let reason = self.reason.take();
        self.close(ItemStatus::after(reason.as_ref()), None, out);
        let status = Status::after(reason.as_ref());
        let event = match status {
            Status::Incomplete => "response.incomplete",
            _ => "response.completed",
        };
        let progress = Progress {
            usage: Some(usage.unwrap_or_default()),
            reason: reason.as_ref(),
            completed_at: Some(unix_now()),
            ..Progress::default()
        };
        self.end_with(event, status, progress, out);
    }

    /// The last event, with all that the response has.
    fn end_with(&mut self, event: &str, status: Status, progress: Progress<'_>, out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.extend_from_slice(b",\"response\":");
        let start = out.len();
        let output = std::mem::take(&mut self.output);
        self.object.push(out, status, &Progress { output: &output, ..progress });
        self.has_ended = true;
        if self.is_kept {
            let body = out.get(start..).unwrap_or_default().to_vec();
            self.finished = Some(Finished { status, body, output });
        }
        self.numbers.end(out);
    }

    /// Ends a response that its caller cancelled. The API has no event for it, so this is an error.
    pub(super) fn cancel(&mut self, out: &mut Vec<u8>) {
        self.numbers.push_error(&ApiError::response_cancelled(), out);
        let output = std::mem::take(&mut self.output);
        let progress = Progress { output: &output, ..Progress::default() };
        let body = self.object.render(Status::Cancelled, &progress);
        self.has_ended = true;
        self.finished = Some(Finished { status: Status::Cancelled, body, output });
    }
}

impl StreamEncoder for ResponseEvents {
    fn answered_by(&mut self, model: &str) {
        self.object.set_model(model);
    }

    fn has_failed(&self) -> bool {
        self.has_ended
    }

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        if !self.has_begun {
            self.begin(out);
        }
        match delta {
            Delta::Text(piece) if piece.text.is_empty() && piece.logprobs.is_none() => {}
            Delta::Text(piece) => self.text(piece, out),
            Delta::ReasoningSeal { seal, .. } => self.seal(seal, out),
            Delta::Reasoning { text, .. } if text.is_empty() => {}
            Delta::Reasoning { text, .. } => self.reasoning(text, out),
            Delta::ToolCall(piece) => self.call(piece, out),
            Delta::Step(step) => push_step(step, out),
            Delta::Finish { reason, .. } => self.reason = Some(reason.clone()),
            Delta::Done { usage } => self.done(*usage, out),
        }
    }

    /// Codex makes a conversation shorter that is too long if an event says so, and gives up if the status does.
    fn sends_in_stream(&self, error: &ApiError) -> bool {
        error.code() == Some(CONTEXT_LENGTH_EXCEEDED)
    }

    /// The item that was being written does not end.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        if !self.has_begun {
            self.begin(out);
        }
        let progress = Progress { error: Some(error), ..Progress::default() };
        self.end_with("response.failed", Status::Failed, progress, out);
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
