//! Requests for vectors of texts, and the vectors.

use std::time::Duration;

/// What to turn into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbedRequest {
    pub model: String,
    /// Each gets one vector.
    pub inputs: EmbedInputs,
    /// The length of the vectors, for models that support several lengths.
    pub dimensions: Option<u32>,
    pub overlong: Overlong,
}

/// What gets a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedInputs {
    Texts(Vec<String>),
    /// Texts as the model's own tokens, from a caller who uses its tokenizer. An engine that does not support them refuses the
    /// field by name.
    Tokens(Vec<Vec<u32>>),
}

impl EmbedInputs {
    pub fn len(&self) -> usize {
        match self {
            EmbedInputs::Texts(texts) => texts.len(),
            EmbedInputs::Tokens(lists) => lists.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The texts; `None` where there are tokens instead.
    pub fn texts(&self) -> Option<&[String]> {
        match self {
            EmbedInputs::Texts(texts) => Some(texts),
            EmbedInputs::Tokens(_) => None,
        }
    }
}

impl Default for EmbedInputs {
    fn default() -> Self {
        EmbedInputs::Texts(Vec::new())
    }
}

impl From<Vec<String>> for EmbedInputs {
    fn from(texts: Vec<String>) -> Self {
        EmbedInputs::Texts(texts)
    }
}

/// How to handle a text that is longer than the model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlong {
    /// The request is refused, with the length of the text and the limit.
    #[default]
    Refuse,
    /// The text is truncated, and [`Embeddings::cut`] reports it. An engine that cannot truncate still refuses.
    Cut,
}

/// The vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The model that made them.
    pub model: String,
    /// One for each input, in the same order.
    pub vectors: Vec<Vec<f32>>,
    /// `None` when the engine does not count.
    pub prompt_tokens: Option<u64>,
    pub cut: Cut,
    /// How long the model was loaded for this request, where the engine reports it.
    pub load_time: Option<Duration>,
}

/// Which texts were truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The inputs with these indices, in order; mostly none.
    Inputs(Vec<usize>),
    /// The engine truncates and does not report which texts.
    Unreported,
}

impl Cut {
    pub const NONE: Cut = Cut::Inputs(Vec::new());
}
