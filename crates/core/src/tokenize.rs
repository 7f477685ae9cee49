//! Text as a model's tokens, and back.

use crate::generate::GenerateRequest;

/// What to split into tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenizeInput {
    Text {
        text: String,
        /// Whether the tokens that the model expects around a text, such as the one that begins it, are added.
        add_special: bool,
        /// Whether a control token that is written out in the text becomes that token.
        parse_special: bool,
    },
    /// A conversation, as the model's template writes it.
    Conversation(Box<GenerateRequest>),
}

/// A text to split into tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizeRequest {
    pub model: String,
    pub input: TokenizeInput,
    /// Whether the bytes of every token are returned too.
    pub pieces: bool,
}

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokenized {
    pub tokens: Vec<u32>,
    /// The bytes of each token, where they were asked for.
    pub pieces: Option<Vec<Vec<u8>>>,
    /// The model's context, if the engine reports it.
    pub context: Option<u64>,
}

/// Tokens to turn into text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetokenizeRequest {
    pub model: String,
    pub tokens: Vec<u32>,
}
