//! What all embedding requests share, in any wire format: batches of bounded size, and checks of the answer.

use std::time::Duration;

use hob_core::{Cut, EmbedRequest, Embeddings, EngineError, Overlong};

use crate::wire::client::Endpoint;

/// The most inputs of one request. The response to this many inputs stays within the limit of a response body.
pub(crate) const MAX_INPUTS: usize = 256;

/// The hint for a caller who sends tokens to an engine that takes only text.
pub(crate) const ONLY_TEXT: &str = "it accepts text, not arrays of tokens; send the text";

/// The most bytes of text in one request, unless a single input is longer. OpenAI accepts 300,000 tokens per request.
const MAX_BYTES: usize = 512 << 10;

/// What an engine does with a text that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlongPolicy {
    Refuses,
    /// Truncates it if the request asks for that.
    CutsOnRequest,
}

/// An input of an embedding request.
pub(crate) trait Input {
    /// Its approximate size in a request.
    fn bytes(&self) -> usize;
}

impl Input for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// A list of tokens. A token is about four bytes of text.
impl Input for Vec<u32> {
    fn bytes(&self) -> usize {
        self.len().saturating_mul(4)
    }
}

/// Splits the inputs into batches of at least one input.
pub(crate) fn batches<T: Input>(inputs: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let mut rest = inputs;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take(most).take_while(|input| {
            bytes += input.bytes();
            bytes <= MAX_BYTES
        });
        let count = fitting.count().max(1).min(rest.len());
        let (now, later) = rest.split_at(count);
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

/// The answer to one batch.
pub(crate) struct EmbeddingBatch {
    /// The model's name as the engine returned it.
    pub(crate) model: Option<String>,
    pub(crate) vectors: Vec<Vec<f32>>,
    pub(crate) prompt_tokens: Option<u64>,
    /// How long the model was loaded for it.
    pub(crate) load_time: Option<Duration>,
}

/// Joins the answers to all batches.
pub(crate) struct EmbeddingCollector<'a> {
    endpoint: &'a Endpoint,
    request: &'a EmbedRequest,
    embeddings: Embeddings,
}

impl<'a> EmbeddingCollector<'a> {
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        request: &'a EmbedRequest,
        overlong_policy: OverlongPolicy,
    ) -> Self {
        let may_be_cut = match overlong_policy {
            OverlongPolicy::Refuses => false,
            OverlongPolicy::CutsOnRequest => request.overlong == Overlong::Cut,
        };
        let embeddings = Embeddings {
            model: request.model.clone(),
            vectors: Vec::with_capacity(request.inputs.len()),
            prompt_tokens: Some(0),
            cut: if may_be_cut { Cut::Unreported } else { Cut::NONE },
            load_time: None,
        };
        EmbeddingCollector { endpoint, request, embeddings }
    }

    /// Adds the answer to a batch of `asked` inputs.
    pub(crate) fn add(&mut self, asked: usize, batch: EmbeddingBatch) -> Result<(), EngineError> {
        let given = batch.vectors.len();
        if given != asked {
            return Err(self
                .endpoint
                .malformed(format!("it returned {given} embeddings for {asked} inputs")));
        }
        let first = self.embeddings.vectors.first().or(batch.vectors.first());
        let length = first.map_or(0, Vec::len);
        if length == 0 || batch.vectors.iter().any(|vector| vector.len() != length) {
            return Err(self.endpoint.malformed("the embeddings are empty or differ in length"));
        }
        if self.request.dimensions.is_some_and(|wanted| wanted as usize != length) {
            // Some engines and models ignore the field, and the caller cannot use a vector of another length.
            let hint = format!("'{}' returns vectors with {length} dimensions", self.request.model);
            return Err(self.endpoint.unsupported("dimensions", Some(&hint)));
        }
        let sum = &mut self.embeddings.prompt_tokens;
        *sum = sum.zip(batch.prompt_tokens).map(|(sum, more)| sum.saturating_add(more));
        self.embeddings.vectors.extend(batch.vectors);
        // The model is loaded once, for the first batch.
        self.embeddings.load_time = self.embeddings.load_time.max(batch.load_time);
        if let Some(model) = batch.model {
            self.embeddings.model = model;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Embeddings {
        self.embeddings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_sent_in_pieces_that_are_neither_too_many_nor_too_long() {
        let sizes = |inputs: &[String], most| batches(inputs, most).map(<[String]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(&vec!["x".to_owned(); 5], 2), [2, 2, 1]);
        let long = "x".repeat(MAX_BYTES / 2);
        assert_eq!(sizes(&[long.clone(), long.clone(), long], 9), [2, 1]);
        let too_long = "x".repeat(MAX_BYTES + 1);
        assert_eq!(sizes(&[too_long.clone(), "y".to_owned(), too_long], 9), [1, 1, 1]);
        assert_eq!(sizes(&[], 9), [] as [usize; 0]);
        let tokens = vec![vec![7_u32; MAX_BYTES / 8]; 3];
        assert_eq!(batches(&tokens, 9).map(<[Vec<u32>]>::len).collect::<Vec<_>>(), [2, 1]);
    }
}
