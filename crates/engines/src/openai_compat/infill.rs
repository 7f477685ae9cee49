//! llama.cpp's `POST /infill`: it fills the gap between two texts with the model's own tokens for that. Its answer is in
//! llama.cpp's own format.

use std::collections::VecDeque;

use hob_core::{
    Collector, CompletionRequest, Delta, FinishReason, Generation, ReplyMode, ResponseFormat, TextDelta,
    Usage,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::error_response::EngineErrorBody;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;
use crate::wire::stream_decoder::{DecodeError, Decoder};
use crate::wire::token_count;
use crate::wire::unsupported_field::UnsupportedField;

/// The request's body, for the answer with the index `answer`: one request gives one answer.
pub(super) fn body(
    request: &CompletionRequest,
    reply_mode: ReplyMode,
    answer: u32,
) -> Result<Vec<u8>, UnsupportedField> {
    let Some(prefix) = request.prompt.text() else {
        return Err(UnsupportedField::because("prompt", "with a suffix it must be text, not tokens"));
    };
    if request.echo {
        return Err(UnsupportedField::because("echo", "llama.cpp returns no probabilities of the prompt"));
    }
    let sampling = &request.sampling;
    let fields = [
        ("input_prefix", Some(json!(prefix))),
        ("input_suffix", Some(json!(request.suffix.as_deref().unwrap_or_default()))),
        ("stream", Some(json!(reply_mode == ReplyMode::Streamed))),
        ("n_predict", request.max_tokens().map(|most| json!(most))),
        ("temperature", request.temperature().map(|value| json!(value))),
        ("top_p", sampling.top_p.map(|value| json!(value))),
        ("stop", (!sampling.stop.is_empty()).then(|| json!(sampling.stop))),
        // The same seed would give the same answer again.
        ("seed", sampling.seed.map(|seed| json!(seed.wrapping_add(i64::from(answer))))),
        ("presence_penalty", sampling.presence_penalty.map(|value| json!(value))),
        ("frequency_penalty", sampling.frequency_penalty.map(|value| json!(value))),
        ("n_probs", sampling.logprobs.then(|| json!(sampling.top_logprobs.unwrap_or(0).max(1)))),
        ("json_schema", schema(&request.response_format)),
    ];
    let mut body: Map<String, Value> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    body.extend(request.extra.clone());
    serde_json::to_vec(&body).map_err(|error| UnsupportedField::because("prompt", error.to_string()))
}

fn schema(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(json!({ "type": "object" })),
        ResponseFormat::JsonSchema(schema) => Some(schema.schema.clone()),
    }
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    stop: bool,
    #[serde(default)]
    stop_type: Option<String>,
    #[serde(default, deserialize_with = "token_count::optional")]
    tokens_evaluated: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    tokens_predicted: Option<u64>,
    #[serde(default)]
    completion_probabilities: Option<Vec<Value>>,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Timings {
    #[serde(default, deserialize_with = "token_count::optional")]
    cache_n: Option<u64>,
}

impl Piece {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(bytes).map_err(|error| DecodeError::unreadable(bytes, error.to_string()))
    }

    fn deltas(self, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        if let Some(error) = &self.error {
            return Err(DecodeError::reported(EngineErrorBody::of(error)));
        }
        let Some(text) = self.content else {
            return Err(DecodeError::Malformed("it has no content".to_owned()));
        };
        let tokens = self.completion_probabilities.filter(|tokens| !tokens.is_empty());
        let logprobs = tokens.map(|tokens| Box::new(json!({ "content": tokens })));
        if !text.is_empty() || logprobs.is_some() {
            deltas.push_back(Delta::Text(TextDelta { choice: 0, text, logprobs }));
        }
        if self.stop {
            let reason = self.stop_type.as_deref().map_or(FinishReason::Stop, FinishReason::parse);
            let usage =
                self.tokens_evaluated.zip(self.tokens_predicted).map(|(prompt_tokens, written)| Usage {
                    prompt_tokens,
                    completion_tokens: written,
                    cached_tokens: self.timings.and_then(|timings| timings.cache_n),
                    reasoning_tokens: None,
                    load_time: None,
                });
            deltas.push_back(Delta::Finish { choice: 0, reason });
            deltas.push_back(Delta::Done { usage });
        }
        Ok(())
    }
}

/// Reads a complete answer.
pub(super) fn read(body: &[u8], requested_model: &str) -> Result<Generation, DecodeError> {
    let mut piece = Piece::read(body)?;
    let model = piece.model.take().filter(|model| !model.is_empty());
    let mut deltas = VecDeque::new();
    piece.deltas(&mut deltas)?;
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    collector.finish(model.unwrap_or_else(|| requested_model.to_owned())).ok_or(DecodeError::Incomplete)
}

/// Decodes one stream.
pub(super) struct InfillDecoder;

impl Decoder for InfillDecoder {
    const FRAMING: Framing = Framing::Blocks;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let Some(event) = SseEvent::read(frame) else {
            return DecodeError::in_place_of_event(frame);
        };
        if let Some(error) = event.error {
            return Err(DecodeError::reported(EngineErrorBody::read(error)));
        }
        Piece::read(&event.data)?.deltas(deltas)
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        Err(DecodeError::Incomplete)
    }
}
