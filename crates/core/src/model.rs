//! What is known of a model.

/// A model an engine can answer with. Only the id is certain; engines tell what they know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInfo {
    pub id: String,
    /// Unix seconds.
    pub created: Option<i64>,
    /// Number of weights.
    pub parameters: Option<u64>,
    /// Context window in tokens.
    pub context: Option<u64>,
    /// Bytes on disk, which is roughly what it needs of (video) memory before its context.
    pub size: Option<u64>,
    /// Such as `Q4_K_M`.
    pub quantization: Option<String>,
    pub kind: ModelKind,
}

/// What a model makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelKind {
    /// An answer; so does every model of which nothing else is known.
    #[default]
    Text,
    /// A vector and nothing else: it cannot answer.
    Embedding,
}

impl ModelInfo {
    pub fn named(id: impl Into<String>) -> Self {
        ModelInfo { id: id.into(), ..ModelInfo::default() }
    }
}
