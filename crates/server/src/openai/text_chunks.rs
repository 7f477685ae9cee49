//! A streamed text completion as server-sent events: pieces, finish, usage if requested, `[DONE]`.
//!
//! The constant part of a chunk is rendered once for a stream; for a piece only its text is escaped.

use std::collections::HashMap;

use hob_core::{Delta, TextDelta, Usage};

use super::chat_response::WireUsage;
use super::chunk_head::ChunkHead;
use super::completions_response::{CompletionForm, LegacyLogprobs};
use crate::answer::stream::{StreamEncoder, push_step};
use crate::error::{ApiError, ErrorFormat};
use crate::json::push_json;

/// The sequence of chunks of one answer.
pub(crate) struct TextChunks {
    head: ChunkHead,
    include_usage: bool,
    alternatives: usize,
    /// Where the next token of an answer begins, for answers with probabilities.
    offsets: HashMap<u32, usize>,
}

impl TextChunks {
    pub(crate) fn new(form: CompletionForm<'_>, model: &str, include_usage: bool) -> Self {
        let head = ChunkHead::new("text_completion", form.id, form.created, model);
        TextChunks { head, include_usage, alternatives: form.alternatives, offsets: HashMap::new() }
    }

    fn piece(&mut self, piece: &TextDelta, out: &mut Vec<u8>) {
        self.open(piece.choice, &piece.text, out);
        match &piece.logprobs {
            None => out.extend_from_slice(b"null"),
            Some(logprobs) => {
                let offset = self.offsets.entry(piece.choice).or_default();
                push_json(out, &LegacyLogprobs::read(logprobs, self.alternatives, offset));
            }
        }
        out.extend_from_slice(b",\"finish_reason\":null}]}\n\n");
    }

    /// Begins a chunk, up to its probabilities.
    fn open(&self, choice: u32, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head.bytes());
        out.extend_from_slice(b"{\"text\":");
        push_json(out, text);
        out.extend_from_slice(b",\"index\":");
        out.extend_from_slice(itoa::Buffer::new().format(choice).as_bytes());
        out.extend_from_slice(b",\"logprobs\":");
    }

    fn done(&self, usage: Option<Usage>, out: &mut Vec<u8>) {
        if self.include_usage {
            out.extend_from_slice(self.head.bytes());
            out.extend_from_slice(b"],\"usage\":");
            push_json(out, &usage.map(WireUsage::from).unwrap_or_default());
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

impl StreamEncoder for TextChunks {
    fn answered_by(&mut self, model: &str) {
        self.head.set_model(model);
    }

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(piece) => self.piece(piece, out),
            Delta::Finish { choice, reason } => {
                self.open(*choice, "", out);
                out.extend_from_slice(b"null,\"finish_reason\":");
                push_json(out, reason.as_str());
                out.extend_from_slice(b"}]}\n\n");
            }
            Delta::Done { usage } => self.done(*usage, out),
            // A text that is continued has neither a thought nor calls. A model in the cloud, which answers it as a question, can
            // think before it answers; that is no part of the text.
            Delta::Reasoning { .. } | Delta::ReasoningSeal { .. } | Delta::ToolCall(_) => {}
            Delta::Step(step) => push_step(step, out),
        }
    }

    /// No finish chunk and no `[DONE]` follow.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&error.event(ErrorFormat::OpenAi));
        out.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{EngineError, FinishReason};
    use serde_json::json;

    use super::*;

    fn rendered(include_usage: bool, deltas: &[Delta]) -> String {
        let form = CompletionForm { id: "cmpl-1", created: 7, alternatives: 1 };
        let mut chunks = TextChunks::new(form, "m", include_usage);
        let mut out = Vec::new();
        deltas.iter().for_each(|delta| chunks.push(delta, &mut out));
        String::from_utf8(out).unwrap()
    }

    fn chunk(rest: &str) -> String {
        let head = r#"data: {"id":"cmpl-1","object":"text_completion","created":7,"model":"m","choices":["#;
        format!("{head}{rest}}}\n\n")
    }

    #[test]
    fn pieces_finish_usage_and_the_end_come_in_this_order() {
        let usage = Usage {
            prompt_tokens: 1,
            completion_tokens: 2,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        };
        let deltas = [
            Delta::text("a\"b"),
            Delta::Text(TextDelta { choice: 1, text: "c".into(), logprobs: None }),
            Delta::Finish { choice: 0, reason: FinishReason::Length },
            Delta::Done { usage: Some(usage) },
        ];
        let expected = [
            chunk(r#"{"text":"a\"b","index":0,"logprobs":null,"finish_reason":null}]"#),
            chunk(r#"{"text":"c","index":1,"logprobs":null,"finish_reason":null}]"#),
            chunk(r#"{"text":"","index":0,"logprobs":null,"finish_reason":"length"}]"#),
            chunk(r#"],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#),
            "data: [DONE]\n\n".to_owned(),
        ];
        assert_eq!(rendered(true, &deltas), expected.concat());
        assert!(!rendered(false, &deltas).contains("usage"));
    }

    #[test]
    fn the_offsets_of_tokens_continue_from_piece_to_piece() {
        let piece = |token: &str| {
            let logprobs = json!({ "content": [{ "token": token, "logprob": -1.0, "top_logprobs": [] }] });
            Delta::Text(TextDelta { choice: 0, text: token.into(), logprobs: Some(Box::new(logprobs)) })
        };
        let stream = rendered(false, &[piece("ab"), piece("c")]);
        assert!(
            stream
                .contains(r#""tokens":["ab"],"token_logprobs":[-1.0],"top_logprobs":[{}],"text_offset":[0]"#)
        );
        assert!(
            stream
                .contains(r#""tokens":["c"],"token_logprobs":[-1.0],"top_logprobs":[{}],"text_offset":[2]"#)
        );
    }

    #[test]
    fn a_broken_stream_ends_with_its_error() {
        let form = CompletionForm { id: "cmpl-1", created: 7, alternatives: 0 };
        let mut out = Vec::new();
        let error = EngineError::Interrupted { engine: "e".into(), reason: "gone".into() };
        TextChunks::new(form, "m", true).fail(&error.into(), &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(out.starts_with("data: {\"error\":") && !out.contains("[DONE]"), "{out}");
    }
}
