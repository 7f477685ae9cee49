//! Counts tokens where an engine does not. Close enough to compare costs, and always marked as an estimate.

use crate::generate::GenerateRequest;

/// Text has about four bytes to a token.
const BYTES_PER_TOKEN: u64 = 4;

/// Role and separators of a message.
const TOKENS_PER_MESSAGE: u64 = 4;

/// A picture of a million pixels.
const TOKENS_PER_PICTURE: u64 = 1_300;

/// The estimate for a text of that many bytes.
pub fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The estimate for the conversation of a request. Only adds lengths, so it is cheap for long conversations.
pub fn prompt_tokens(request: &GenerateRequest) -> u64 {
    let said: u64 = request.messages.iter().map(|message| message.content.text_bytes()).sum();
    tokens_of(said) + TOKENS_PER_MESSAGE * request.messages.len() as u64
}

/// The same with everything else that a model reads: tools, calls, reasoning and pictures.
pub fn whole_prompt_tokens(request: &GenerateRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| {
        let schema = tool.parameters.as_ref().map_or(0, |schema| schema.to_string().len());
        tool.name.len() + tool.description.as_ref().map_or(0, String::len) + schema
    });
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let calls = calls.map(|call| call.name.len() + call.arguments.len());
    let fields = request.messages.iter().flat_map(|message| message.extra.values());
    let fields = fields.map(|value| value.as_str().map_or(0, str::len));
    let bytes: usize = tools.chain(calls).chain(fields).sum();
    let pictures =
        request.messages.iter().map(|message| message.content.images().count() as u64).sum::<u64>();
    prompt_tokens(request) + tokens_of(bytes as u64) + TOKENS_PER_PICTURE * pictures
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use crate::generate::ToolDefinition;
    use crate::message::{Content, ContentPart, Image, Message, Role, ToolCall};

    use super::*;

    #[test]
    fn tools_calls_reasoning_and_pictures_count_too() {
        let tool = ToolDefinition {
            name: "add".into(),
            description: Some("adds".into()),
            parameters: Some(json!({ "type": "object" })),
            strict: None,
        };
        let call = ToolCall { id: "c".into(), name: "add".into(), arguments: "{\"a\":1}".into() };
        let picture = ContentPart::Image(Image { url: "data:image/png;base64,AAAA".into(), detail: None });
        let thought = Message {
            tool_calls: vec![call],
            extra: Map::from_iter([("reasoning_content".to_owned(), json!("12345678"))]),
            ..Message::new(Role::Assistant, "")
        };
        let shown = Message::new(Role::User, Content::Parts(vec![picture]));
        let request = GenerateRequest {
            messages: vec![shown, thought],
            tools: vec![tool],
            ..GenerateRequest::default()
        };
        // 3 + 4 + 17 bytes of the tool, 3 + 7 of the call and 8 of the reasoning are 42 bytes.
        assert_eq!(whole_prompt_tokens(&request), 8 + 11 + 1_300);
    }

    #[test]
    fn a_conversation_counts_by_its_text_and_its_messages() {
        let messages = vec![Message::new(Role::System, "be kind"), Message::new(Role::User, "good day")];
        let request = GenerateRequest { messages, ..GenerateRequest::default() };
        assert_eq!(prompt_tokens(&request), 4 + 8);
        assert_eq!(whole_prompt_tokens(&request), 4 + 8);
        assert_eq!((tokens_of(0), tokens_of(1), tokens_of(9)), (0, 1, 3));
    }
}
