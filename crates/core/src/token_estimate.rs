//! Counts tokens where an engine does not. Close enough to compare costs, and always marked as an estimate.

use crate::generate::GenerateRequest;
use crate::message::{Content, ContentPart};

/// Text has about four bytes to a token.
const BYTES_PER_TOKEN: u64 = 4;

/// Role and separators of a message.
const TOKENS_PER_MESSAGE: u64 = 4;

/// What a text of that many bytes amounts to.
pub fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// What the conversation of a request amounts to. Adds lengths only, so that a long conversation costs no more to ask about.
pub fn prompt_tokens(request: &GenerateRequest) -> u64 {
    let said: u64 = request.messages.iter().map(|message| text_bytes(&message.content)).sum();
    tokens_of(said) + TOKENS_PER_MESSAGE * request.messages.len() as u64
}

fn text_bytes(content: &Content) -> u64 {
    match content {
        Content::Empty => 0,
        Content::Text(text) => text.len() as u64,
        Content::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                ContentPart::Text(text) => text.len() as u64,
                ContentPart::Image(_) | ContentPart::Other(_) => 0,
            })
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Message, Role};

    use super::*;

    #[test]
    fn a_conversation_counts_by_its_text_and_its_messages() {
        let messages = vec![Message::new(Role::System, "be kind"), Message::new(Role::User, "good day")];
        let request = GenerateRequest { messages, ..GenerateRequest::default() };
        assert_eq!(prompt_tokens(&request), 4 + 8);
        assert_eq!((tokens_of(0), tokens_of(1), tokens_of(9)), (0, 1, 3));
    }
}
