//! Text turned into vectors, by whoever can.

/// Texts to turn into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbedRequest {
    pub model: String,
    /// One vector is made of each.
    pub inputs: Vec<String>,
    /// How long the vectors are to be, for models that can make them shorter.
    pub dimensions: Option<u32>,
}

/// The vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The model that made them.
    pub model: String,
    /// As many as there were inputs, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// `None` when the engine does not count.
    pub prompt_tokens: Option<u64>,
}
