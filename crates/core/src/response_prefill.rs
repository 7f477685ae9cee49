//! An answer that the caller has begun: the last message of the conversation is its beginning, and the model continues it.

use std::borrow::Cow;

use serde_json::Value;

use crate::generate::GenerateRequest;
use crate::message::{Message, Role};

/// The hint of a request whose answer continues the last message.
pub const PREFILL: &str = "prefill";

/// The field of chat completions for it, under the name that vLLM gave it.
pub const CONTINUE_FINAL_MESSAGE: &str = "continue_final_message";

impl GenerateRequest {
    /// Asks for the rest of the last message, if that is the beginning of an answer.
    pub fn continue_last_message(&mut self) {
        if self.begun_answer().is_some() {
            self.hints.insert(PREFILL.to_owned(), Value::Bool(true));
        }
    }

    /// Whether the answer is to continue the last message.
    pub fn continues_last_message(&self) -> bool {
        self.hints.contains_key(PREFILL) || self.extra.get(CONTINUE_FINAL_MESSAGE) == Some(&Value::Bool(true))
    }

    /// The messages before the beginning of an answer, and its words.
    pub fn begun_answer(&self) -> Option<(&[Message], Cow<'_, str>)> {
        let (last, before) = self.messages.split_last()?;
        let words = last.content.text();
        let is_begun = last.role == Role::Assistant && last.tool_calls.is_empty() && !words.is_empty();
        is_begun.then_some((before, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_the_assistant_begin_an_answer() {
        let asking = |messages: Vec<Message>| GenerateRequest { messages, ..GenerateRequest::default() };
        let user = || Message::new(Role::User, "hi");
        for (last, is_begun) in [
            (Message::new(Role::Assistant, "The"), true),
            (Message::new(Role::Assistant, ""), false),
            (Message::new(Role::User, "The"), false),
        ] {
            let mut request = asking(vec![user(), last]);
            request.continue_last_message();
            assert_eq!(request.continues_last_message(), is_begun, "{request:?}");
        }
        let begun = asking(vec![user(), Message::new(Role::Assistant, "The")]);
        assert_eq!(begun.begun_answer(), Some((&[user()][..], Cow::Borrowed("The"))));
    }
}
