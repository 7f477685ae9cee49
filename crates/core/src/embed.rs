//! Text turned into vectors, by whoever can.

/// What to turn into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbedRequest {
    pub model: String,
    /// One vector is made of each.
    pub inputs: EmbedInputs,
    /// How long the vectors are to be, for models that can make them shorter.
    pub dimensions: Option<u32>,
    pub overlong: Overlong,
}

/// What vectors are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedInputs {
    Texts(Vec<String>),
    /// Texts as the model's own tokens, from a caller who knows its tokenizer. Only some engines take them; any other must refuse
    /// them by name.
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

/// What becomes of a text that is longer than the model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlong {
    /// The request is refused, with the length there is and the length there may be.
    #[default]
    Refuse,
    /// Its beginning stands for it, and [`Embeddings::cut`] says so. An engine that cannot cut still refuses.
    Cut,
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
    pub cut: Cut,
}

/// Which texts were cut before they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The inputs with these indices, in order; mostly none.
    Inputs(Vec<usize>),
    /// The engine cuts and does not tell which.
    Untold,
}

impl Cut {
    pub const NONE: Cut = Cut::Inputs(Vec::new());
}
