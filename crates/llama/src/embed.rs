//! Embeds texts, on the worker's thread between its steps.

use std::collections::VecDeque;

use hob_core::EngineError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::error::unusable;
use crate::job::{EmbedJob, VectorForm};
use crate::loaded_model::LoadedModel;
use crate::vector_context::VectorContext;

/// Embeds texts.
pub(crate) struct Embedder<'model> {
    loaded: &'model LoadedModel,
    context: Option<LlamaContext<'model>>,
    waiting: VecDeque<Running>,
}

struct Running {
    job: EmbedJob,
    vectors: Vec<Vec<f32>>,
}

impl<'model> Embedder<'model> {
    /// Its context is created on first use. If a model on a graphics card has no other, it is created now and reads a full batch, so
    /// that the card has the memory for it from then on.
    pub(crate) fn new(loaded: &'model LoadedModel) -> Result<Self, EngineError> {
        let mut embedder = Embedder { loaded, context: None, waiting: VecDeque::new() };
        if loaded.embeds_only && loaded.offload.layers > 0 {
            let context = embedder.context.insert(loaded.embedding_context()?);
            let most_tokens = loaded.longest_embedded() as usize;
            // The first request would report the same failure.
            let _ = embed_batch(context, &[vec![0; most_tokens]], most_tokens);
        }
        Ok(embedder)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn has_context(&self) -> bool {
        self.context.is_some()
    }

    /// Whether its context must be created for a request that a caller still waits for.
    pub(crate) fn needs_context(&self) -> bool {
        self.context.is_none() && self.waiting.iter().any(|running| !running.job.reply.is_closed())
    }

    /// Refuses the requests that wait.
    pub(crate) fn refuse(&mut self, error: impl Fn() -> EngineError) {
        for running in self.waiting.drain(..) {
            // The caller may have disconnected.
            let _ = running.job.reply.send(Err(error()));
        }
    }

    pub(crate) fn take(&mut self, job: EmbedJob) {
        self.waiting.push_back(Running { job, vectors: Vec::new() });
    }

    /// Embeds one batch of the next request. Requests take turns, and answers are generated in between.
    pub(crate) fn step(&mut self) {
        self.waiting.retain(|running| !running.job.reply.is_closed());
        let Some(mut running) = self.waiting.pop_front() else {
            return;
        };
        let form = running.job.form;
        let outcome =
            self.embed_some(&running.job.inputs[running.vectors.len()..], form, &mut running.vectors);
        match outcome {
            Ok(()) if running.vectors.len() < running.job.inputs.len() => self.waiting.push_back(running),
            // The caller may have disconnected.
            Ok(()) => drop(running.job.reply.send(Ok(running.vectors))),
            Err(error) => drop(running.job.reply.send(Err(error))),
        }
    }

    fn embed_some(
        &mut self,
        inputs: &[Vec<i32>],
        form: VectorForm,
        vectors: &mut Vec<Vec<f32>>,
    ) -> Result<(), EngineError> {
        if inputs.is_empty() {
            return Ok(());
        }
        let context = match &mut self.context {
            Some(context) => context,
            None => self.context.insert(self.loaded.embedding_context()?),
        };
        let VectorContext { tokens, texts } = self.loaded.vector_context();
        let most_tokens = tokens as usize;
        let now = together(inputs, texts, most_tokens);
        let made = embed_batch(context, &inputs[..now], most_tokens)
            .map_err(|reason| unusable(format!("'{}' cannot embed: {reason}", self.loaded.id)))?;
        vectors.extend(made.into_iter().map(|vector| match form {
            VectorForm::Normalised => normalised(&vector),
            VectorForm::Raw => vector,
        }));
        Ok(())
    }
}

/// The number of texts in a batch, at least one.
fn together(inputs: &[Vec<i32>], most: usize, most_tokens: usize) -> usize {
    let mut tokens = 0;
    inputs
        .iter()
        .take(most)
        .take_while(|input| {
            tokens += input.len();
            tokens <= most_tokens
        })
        .count()
        .max(1)
}

fn embed_batch(
    context: &mut LlamaContext<'_>,
    inputs: &[Vec<i32>],
    most_tokens: usize,
) -> Result<Vec<Vec<f32>>, String> {
    let mut batch = LlamaBatch::new(most_tokens, 1);
    for (seq, input) in (0..).zip(inputs) {
        for (position, &token) in (0..).zip(input) {
            batch.add(LlamaToken(token), position, &[seq], true).map_err(|error| error.to_string())?;
        }
    }
    context.clear_kv_cache();
    context.decode(&mut batch).map_err(|error| error.to_string())?;
    let vector = |(seq, _)| Ok(context.embeddings_seq_ith(seq).map_err(|error| error.to_string())?.to_vec());
    (0..).zip(inputs).map(vector).collect()
}

/// Scales to length one, so that a dot product compares texts.
fn normalised(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 { vector.iter().map(|number| number / length).collect() } else { vector.to_vec() }
}

#[cfg(test)]
mod tests {
    use hob_testkit::gguf::MetadataValue;

    use super::*;
    use crate::fixtures::{changed_model, on_processor};
    use crate::options::LlamaOptions;

    #[test]
    fn a_model_that_embeds_has_its_memory_of_a_card_when_it_is_loaded() {
        let (_dir, stored) = changed_model(&[("llama.pooling_type", MetadataValue::Number(1))]);
        let options = LlamaOptions { context: Some(64), ..on_processor() };
        let mut loaded = LoadedModel::load_file(&stored, &stored.path, &options).expect("a model");
        assert!(!Embedder::new(&loaded).expect("an embedder").has_context());
        loaded.offload.layers = 31;
        assert!(Embedder::new(&loaded).expect("an embedder").has_context());
        // A model that writes has another context.
        loaded.embeds_only = false;
        assert!(!Embedder::new(&loaded).expect("an embedder").has_context());
    }

    #[test]
    fn vectors_have_length_one() {
        assert_eq!(normalised(&[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(normalised(&[0.0, 0.0]), [0.0, 0.0]);
    }

    #[test]
    fn texts_share_a_batch_until_it_is_full() {
        let inputs = [vec![0; 40], vec![0; 40], vec![0; 40]];
        assert_eq!(together(&inputs, 8, 100), 2);
        assert_eq!(together(&inputs, 1, 100), 1);
        assert_eq!(together(&inputs, 8, 10), 1);
    }
}
