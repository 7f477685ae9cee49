//! Generated vectors, clustered like those of real text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use hob_core::{
    Cut, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    ModelInfo,
};
use hob_memory::MemoryError;
use hob_memory::{Embedder, EmbedderDownload, EmbedderSource};

pub const MODEL: &str = "made-up";

/// As all-MiniLM-L6-v2.
const DIMENSIONS: usize = 384;

/// Chunks per group, about.
const GROUP: u64 = 50;

/// The vector of a chunk: that of its group, and an offset.
pub fn vector(chunk: i64) -> Vec<f32> {
    let chunk = chunk.unsigned_abs();
    // Neighbours on disk are not neighbours in meaning.
    let group = chunk.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (chunk / GROUP + 1).next_power_of_two();
    mixed(group, chunk.wrapping_add(1 << 40), 0.6)
}

fn mixed(group: u64, own: u64, share: f32) -> Vec<f32> {
    let (mut group, mut own) = (fastrand::Rng::with_seed(group), fastrand::Rng::with_seed(own));
    (0..DIMENSIONS).map(|_| (group.f32() - 0.5) + share * (own.f32() - 0.5)).collect()
}

/// Returns vectors near those of existing chunks.
pub struct Oracle {
    chunks: usize,
    engine: Arc<Asked>,
}

struct Asked {
    chunks: usize,
    count: AtomicUsize,
}

impl Oracle {
    pub fn new(chunks: usize) -> Self {
        Oracle { chunks, engine: Arc::new(Asked { chunks, count: AtomicUsize::new(0) }) }
    }

    /// A vector near some chunk.
    pub fn question(&self, number: usize) -> Vec<f32> {
        question(self.chunks, number)
    }

    /// The nearest chunks, by comparing all.
    pub fn nearest(&self, question: &[f32], count: usize) -> Vec<i64> {
        let mut all: Vec<(f32, i64)> = (1..=self.chunks as i64)
            .map(|chunk| {
                let vector = vector(chunk);
                let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
                let dot: f32 = vector.iter().zip(question).map(|(one, other)| one * other).sum();
                (dot / length, chunk)
            })
            .collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        all.into_iter().take(count).map(|(_, chunk)| chunk).collect()
    }
}

fn question(chunks: usize, number: usize) -> Vec<f32> {
    let chunk = (number * 7_919) % chunks + 1;
    let mut own = fastrand::Rng::with_seed(number as u64 + (1 << 50));
    vector(chunk as i64).into_iter().map(|number| number + 0.4 * (own.f32() - 0.5)).collect()
}

#[async_trait]
impl EmbedderSource for Oracle {
    async fn embedder(&self, _: EmbedderDownload) -> Result<Embedder, MemoryError> {
        Ok(Embedder { engine: Arc::clone(&self.engine) as Arc<dyn Engine>, model: MODEL.to_owned() })
    }
}

fn cannot() -> EngineError {
    EngineError::Unsupported { engine: MODEL.to_owned(), field: "chat".to_owned(), hint: None }
}

#[async_trait]
impl Engine for Asked {
    fn key(&self) -> &str {
        MODEL
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, _: &GenerateRequest) -> Result<Generation, EngineError> {
        Err(cannot())
    }

    async fn stream(&self, _: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        Err(cannot())
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let one = |_: &String| question(self.chunks, self.count.fetch_add(1, Ordering::Relaxed));
        Ok(Embeddings {
            model: MODEL.to_owned(),
            vectors: request.inputs.texts().unwrap_or_default().iter().map(one).collect(),
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
