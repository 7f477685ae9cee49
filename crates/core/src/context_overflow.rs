//! Conversations that are too long for their model: how engines report it, and the message that OpenAI's clients expect. Knows no
//! wire format: engines hand over the words and the code of their error.

/// The code by which OpenAI's clients know that a conversation is too long.
pub const CONTEXT_LENGTH_EXCEEDED: &str = "context_length_exceeded";

/// Codes of engines that mean the same.
const CODES: [&str; 4] = [
    CONTEXT_LENGTH_EXCEEDED,
    // llama.cpp
    "exceed_context_size_error",
    "context_window_exceeded",
    "ContextWindowExceededError",
];

/// What engines without such a code say, in lower case.
const WORDS: [&str; 7] = [
    "context length",
    "context size",
    "context window",
    "context_length",
    "contextwindowexceeded",
    "prompt is too long",
    "input token count",
];

/// What stands before the limit of the model, in lower case.
const BEFORE_LIMIT: [&str; 6] = [
    "maximum context length is ",
    "maximum context length of ",
    // llama.cpp
    "context size (",
    // SGLang
    "context length (",
    // Anthropic: "prompt is too long: 210012 tokens > 200000 maximum"
    " tokens > ",
    // Gemini
    "maximum number of tokens allowed (",
];

/// What stands before the length of the request, in lower case.
const BEFORE_LENGTH: [&str; 10] = [
    "messages resulted in ",
    "you requested a total of ",
    "you requested ",
    "prompt contains at least ",
    "request has ",
    "request (",
    "the input (",
    "prompt is too long: ",
    "input token count (",
    "the prompt has ",
];

/// A conversation that is too long for its model, with the numbers that the engine gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextOverflow {
    /// Tokens that the model can hold.
    pub limit: Option<u64>,
    /// Tokens that were asked for.
    pub length: Option<u64>,
}

impl ContextOverflow {
    /// Reads an engine's error. `None` when it is about something else.
    pub fn read(status: u16, code: Option<&str>, message: &str) -> Option<Self> {
        let words = message.to_lowercase();
        let is_said = matches!(status, 400 | 413) && WORDS.iter().any(|part| words.contains(part));
        if !is_said && !code.is_some_and(|code| CODES.contains(&code)) {
            return None;
        }
        let number = |before: &[&str]| before.iter().find_map(|part| number_after(&words, part));
        Some(ContextOverflow { limit: number(&BEFORE_LIMIT), length: number(&BEFORE_LENGTH) })
    }

    /// The error in OpenAI's words, which clients search for the limit. `None` when the limit is not known.
    pub fn sentence(&self) -> Option<String> {
        let limit = self.limit?;
        Some(match self.length {
            Some(length) => format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {length} tokens. \
                 Please reduce the length of the messages."
            ),
            None => format!(
                "This model's maximum context length is {limit} tokens. Please reduce the length of the messages."
            ),
        })
    }

    /// The error in Anthropic's words, by which its clients know that they have to shorten the conversation. `None` when the prompt fits,
    /// and it is its answer that does not. `message` is what is said if the numbers are not known.
    pub fn anthropic_sentence(&self, message: &str) -> Option<String> {
        match (self.length, self.limit) {
            (Some(length), Some(limit)) if length <= limit => None,
            (Some(length), Some(limit)) => {
                Some(format!("prompt is too long: {length} tokens > {limit} maximum"))
            }
            _ => Some(format!("prompt is too long: {message}")),
        }
    }
}

/// The number right behind `before`.
fn number_after(words: &str, before: &str) -> Option<u64> {
    let (_, rest) = words.split_once(before)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_understood_with_its_numbers() {
        for (message, limit, length) in [
            // llama.cpp
            (
                "request (12031 tokens) exceeds the available context size (2048 tokens), try increasing it",
                Some(2048),
                Some(12031),
            ),
            // vLLM
            (
                "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens",
                Some(2048),
                Some(2049),
            ),
            (
                "'max_tokens' is too large: 5000. This model's maximum context length is 2048 tokens and your request has 42 \
                 input tokens",
                Some(2048),
                Some(42),
            ),
            // SGLang
            (
                "The input (12031 tokens) is longer than the model's context length (8192 tokens).",
                Some(8192),
                Some(12031),
            ),
            (
                "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 \
                 tokens: 42 tokens from the input messages and 8958 tokens for the completion.",
                Some(8192),
                Some(9000),
            ),
            // OpenAI
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
                Some(128_000),
                Some(130_001),
            ),
            // Anthropic
            ("prompt is too long: 210012 tokens > 200000 maximum", Some(200_000), Some(210_012)),
            // Gemini
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_200_000),
            ),
            // Ollama
            ("the input length exceeds the context length", None, None),
        ] {
            assert_eq!(
                ContextOverflow::read(400, None, message),
                Some(ContextOverflow { limit, length }),
                "{message}"
            );
        }
    }

    #[test]
    fn a_code_says_it_without_words_and_other_trouble_is_none() {
        let unknown = Some(ContextOverflow { limit: None, length: None });
        assert_eq!(ContextOverflow::read(500, Some("exceed_context_size_error"), "no"), unknown);
        assert_eq!(ContextOverflow::read(400, Some("BadRequestError"), "temperature must be a number"), None);
        assert_eq!(ContextOverflow::read(500, None, "context length"), None);
        assert_eq!(unknown.and_then(|overflow| overflow.sentence()), None);
    }

    #[test]
    fn numbers_that_are_too_large_or_missing_are_not_told() {
        let overflow =
            ContextOverflow::read(400, None, "maximum context length is 99999999999999999999 tokens");
        assert_eq!(overflow, Some(ContextOverflow { limit: None, length: None }));
        let overflow = ContextOverflow::read(400, None, "maximum context length is many tokens");
        assert_eq!(overflow, Some(ContextOverflow { limit: None, length: None }));
    }
}
