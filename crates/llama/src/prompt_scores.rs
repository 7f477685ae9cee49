//! The probabilities of the tokens of a prompt, for an answer that begins with its prompt. Pure.

use std::cell::RefCell;

use hob_core::{Delta, TextDelta};
use serde_json::{Value, json};

/// Positions of a prompt that are scored in one step. Each takes as much memory as the vocabulary has scores.
pub(crate) const SCORED_AT_ONCE: usize = 32;

/// Probabilities of the tokens of a prompt, with their alternatives, in all answers of a request. Each takes some hundred bytes.
pub(crate) const MAX_PROBABILITIES: usize = 1 << 16;

/// A prompt that its answers repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepeatedPrompt {
    pub(crate) text: String,
    /// Whether the first token only begins the prompt and is no part of its text.
    pub(crate) is_begun_by_token: bool,
}

/// The prompt with the probabilities that are known so far.
#[derive(Debug)]
pub(crate) struct PromptScores {
    prompt: RepeatedPrompt,
    /// Of all tokens but the first, in order.
    known: RefCell<Vec<Value>>,
}

impl PromptScores {
    pub(crate) fn new(prompt: RepeatedPrompt) -> Self {
        PromptScores { prompt, known: RefCell::default() }
    }

    /// Adds the probabilities of the next token.
    pub(crate) fn push(&self, token: Value) {
        self.known.borrow_mut().push(token);
    }

    /// The prompt as the beginning of an answer. Nothing precedes the first token, so that nothing is known of it.
    pub(crate) fn delta(&self, choice: u32, first: i32, bytes: Vec<u8>) -> Delta {
        let bytes = if self.prompt.is_begun_by_token { Vec::new() } else { bytes };
        let first = json!({
            "id": first,
            "token": String::from_utf8_lossy(&bytes),
            "bytes": bytes,
            "logprob": null,
            "top_logprobs": [],
        });
        let tokens: Vec<Value> = std::iter::once(first).chain(self.known.borrow().iter().cloned()).collect();
        Delta::Text(TextDelta {
            choice,
            text: self.prompt.text.clone(),
            logprobs: Some(Box::new(json!({ "content": tokens }))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_only_begins_a_prompt_has_no_text() {
        for (is_begun_by_token, token, bytes) in [(false, "a", json!([97])), (true, "", json!([]))] {
            let scores = PromptScores::new(RepeatedPrompt { text: "ab".into(), is_begun_by_token });
            scores.push(json!({ "token": "b" }));
            let content = json!([
                { "id": 7, "token": token, "bytes": bytes, "logprob": null, "top_logprobs": [] },
                { "token": "b" },
            ]);
            let logprobs = Some(Box::new(json!({ "content": content })));
            let expected = Delta::Text(TextDelta { choice: 1, text: "ab".into(), logprobs });
            assert_eq!(scores.delta(1, 7, b"a".to_vec()), expected);
        }
    }
}
