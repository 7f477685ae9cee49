//! An engine for tests whose vectors are the words of a text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use hob_core::{
    Cut, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    ModelInfo,
};

use crate::types::MemoryError;
use crate::{Embedder, EmbedderDownload, EmbedderSource};

/// Words with the same vector.
const SYNONYMS: [(&str, &str); 2] = [("automobile", "car"), ("physician", "doctor")];

#[derive(Default)]
pub(crate) struct WordVectors {
    /// The number of embedded texts.
    pub(crate) embedded: AtomicUsize,
    /// Whether every request fails.
    pub(crate) is_down: AtomicBool,
}

impl WordVectors {
    fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.01; 96];
        for word in text.split(|character: char| !character.is_alphanumeric()) {
            let word = word.to_lowercase();
            let word =
                SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map_or(word.as_str(), |(_, word)| word);
            if !word.is_empty() {
                let place =
                    word.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
                vector[place % 96] += 1.0;
            }
        }
        vector
    }
}

#[async_trait]
impl Engine for WordVectors {
    fn key(&self) -> &str {
        "words"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, _: &GenerateRequest) -> Result<Generation, EngineError> {
        unreachable!("only vectors are asked for")
    }

    async fn stream(&self, _: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        unreachable!("only vectors are asked for")
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(EngineError::Malformed { engine: "words".into(), reason: "it is down".into() });
        }
        self.embedded.fetch_add(request.inputs.len(), Ordering::Relaxed);
        Ok(Embeddings {
            model: request.model.clone(),
            vectors: request
                .inputs
                .texts()
                .unwrap_or_default()
                .iter()
                .map(|text| Self::vector(text))
                .collect(),
            prompt_tokens: None,
            cut: Cut::Inputs(Vec::new()),
            load_time: None,
        })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(Vec::new())
    }

    async fn health(&self) -> bool {
        true
    }
}

/// Returns that engine.
pub(crate) struct Given(pub(crate) Arc<WordVectors>);

#[async_trait]
impl EmbedderSource for Given {
    async fn embedder(&self, _: EmbedderDownload) -> Result<Embedder, MemoryError> {
        Ok(Embedder { engine: Arc::clone(&self.0) as Arc<dyn Engine>, model: "words".to_owned() })
    }
}
