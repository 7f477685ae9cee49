//! Text that a model continues as it stands, without a conversation or a template around it.

use std::num::NonZeroU32;

use serde_json::{Map, Value};

use crate::generate::{AnswerDefaults, GenerateRequest, MaxTokens, ResponseFormat, Sampling, Temperature};
use crate::message::{Message, Role};

/// The text to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    Text(String),
    /// The model's own tokens, from a caller who knows its tokenizer. An engine that takes only text refuses them by name.
    Tokens(Vec<u32>),
}

impl Prompt {
    /// The text; `None` where there are tokens instead.
    pub fn text(&self) -> Option<&str> {
        match self {
            Prompt::Text(text) => Some(text),
            Prompt::Tokens(_) => None,
        }
    }
}

impl Default for Prompt {
    fn default() -> Self {
        Prompt::Text(String::new())
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt::Text(text.to_owned())
    }
}

/// Everything an engine needs to continue one text. The answer has the same form as that to a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompletionRequest {
    pub model: String,
    pub prompt: Prompt,
    /// The text after the gap, where the model is to fill in the middle.
    pub suffix: Option<String>,
    /// Whether the answer begins with the prompt. An engine is asked this only together with `sampling.logprobs`, which then
    /// include those of the prompt. Without them the app repeats the prompt itself.
    pub echo: bool,
    /// Nothing is written after the prompt. Only together with `echo` and `sampling.logprobs`, which then score the prompt.
    pub prompt_only: bool,
    /// As the caller gave it.
    pub temperature: Option<Temperature>,
    /// As the caller gave it.
    pub max_tokens: Option<MaxTokens>,
    /// What holds where the caller gave neither.
    pub defaults: AnswerDefaults,
    pub sampling: Sampling,
    pub response_format: ResponseFormat,
    /// Fields of the caller's request that we give no meaning to, as in [`GenerateRequest::extra`].
    pub extra: Map<String, Value>,
    /// What the caller would like, as in [`GenerateRequest::hints`].
    pub hints: Map<String, Value>,
}

impl CompletionRequest {
    /// The caller's, or else the default; `None` leaves it to the engine.
    pub fn temperature(&self) -> Option<f64> {
        self.temperature.or(self.defaults.temperature).map(Temperature::get)
    }

    /// The caller's, or else the default; `None` leaves it to the engine.
    pub fn max_tokens(&self) -> Option<u32> {
        if self.prompt_only {
            return Some(0);
        }
        self.max_tokens.or(self.defaults.max_tokens).map(MaxTokens::get)
    }

    /// How many answers are asked for.
    pub fn answers(&self) -> u32 {
        self.sampling.n.map_or(1, NonZeroU32::get)
    }

    /// Everything but the prompt, for code that reads the settings of a conversation.
    pub fn settings(&self) -> GenerateRequest {
        GenerateRequest {
            model: self.model.clone(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            defaults: self.defaults,
            sampling: self.sampling.clone(),
            response_format: self.response_format.clone(),
            extra: self.extra.clone(),
            hints: self.hints.clone(),
            ..GenerateRequest::default()
        }
    }

    /// The prompt as a question in a conversation; `None` where it is tokens.
    pub fn as_question(&self) -> Option<GenerateRequest> {
        let messages = vec![Message::new(Role::User, self.prompt.text()?)];
        Some(GenerateRequest { messages, ..self.settings() })
    }
}
