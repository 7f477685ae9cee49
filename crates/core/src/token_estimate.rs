//! Counts tokens where an engine does not. Close enough to compare costs, and always marked as an estimate.

use serde_json::Value;

use crate::generate::{GenerateRequest, ResponseFormat};
use crate::message::{Content, ContentPart};

/// Text has about four bytes to a token.
const BYTES_PER_TOKEN: u64 = 4;

/// Role and separators of a message.
const TOKENS_PER_MESSAGE: u64 = 4;

/// A picture of a million pixels, and the least that a file or a sound counts: an address does not say how long they are.
const TOKENS_PER_PICTURE: u64 = 1_300;

/// A file in base64: a page of a document has some ten thousand bytes, and counts as its text and as a picture.
const BYTES_PER_FILE_TOKEN: u64 = 16;

/// A sound in base64: a second has ten to forty thousand bytes, and ten to thirty tokens.
const BYTES_PER_SOUND_TOKEN: u64 = 256;

/// The estimate for a text of that many bytes.
pub fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The estimate for the conversation of a request. Only adds lengths, so it is cheap for long conversations.
pub fn prompt_tokens(request: &GenerateRequest) -> u64 {
    let said: u64 = request.messages.iter().map(|message| message.content.text_bytes()).sum();
    tokens_of(said) + TOKENS_PER_MESSAGE * request.messages.len() as u64
}

/// The same with everything else that a model reads: tools, calls, reasoning, the schema of the answer, pictures, files and sounds.
pub fn whole_prompt_tokens(request: &GenerateRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| {
        let described = tool.name.len() + tool.description.as_ref().map_or(0, String::len);
        described as u64 + tool.parameters.as_ref().map_or(0, json_bytes)
    });
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let calls = calls.map(|call| (call.name.len() + call.arguments.len()) as u64);
    let fields = request.messages.iter().flat_map(|message| message.extra.values()).map(json_bytes);
    let schema = match &request.response_format {
        ResponseFormat::JsonSchema(format) => {
            let described = format.name.len() + format.description.as_ref().map_or(0, String::len);
            described as u64 + json_bytes(&format.schema)
        }
        ResponseFormat::Text | ResponseFormat::JsonObject => 0,
    };
    let bytes: u64 = tools.chain(calls).chain(fields).sum::<u64>() + schema;
    let attachments: u64 =
        request.messages.iter().flat_map(|message| parts(&message.content)).map(attachment_tokens).sum();
    prompt_tokens(request) + tokens_of(bytes) + attachments
}

fn parts(content: &Content) -> &[ContentPart] {
    match content {
        Content::Parts(parts) => parts,
        Content::Empty | Content::Text(_) => &[],
    }
}

/// What a part counts beside its text.
fn attachment_tokens(part: &ContentPart) -> u64 {
    match part {
        ContentPart::Text(_) => 0,
        ContentPart::Image(_) => TOKENS_PER_PICTURE,
        ContentPart::Other(value) => {
            let bytes_per_token = match value.get("type").and_then(Value::as_str) {
                Some("input_audio" | "audio_url") => BYTES_PER_SOUND_TOKEN,
                _ => BYTES_PER_FILE_TOKEN,
            };
            json_bytes(value).div_ceil(bytes_per_token).max(TOKENS_PER_PICTURE)
        }
    }
}

/// About the length of a value as JSON, without writing it: it may be a large file.
fn json_bytes(value: &Value) -> u64 {
    let separators = |count: usize| count.max(1) as u64 + 1;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(json_bytes).sum::<u64>() + separators(items.len()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| name.len() as u64 + 3 + json_bytes(value);
            fields.iter().map(field).sum::<u64>() + separators(fields.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use crate::generate::{JsonSchema, ToolDefinition};
    use crate::message::{Image, Message, Role, ToolCall};

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
        // 3 + 4 + 17 bytes of the tool, 3 + 7 of the call and 10 of the reasoning are 44 bytes.
        assert_eq!(whole_prompt_tokens(&request), 8 + 11 + 1_300);
    }

    #[test]
    fn the_schema_of_the_answer_files_and_sounds_count_too() {
        let asking = |content: Content| GenerateRequest {
            messages: vec![Message::new(Role::User, content)],
            ..GenerateRequest::default()
        };
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let written = schema.to_string().len() as u64;
        assert_eq!(json_bytes(&schema), written);
        let format =
            JsonSchema { name: "answer".into(), description: Some("one".into()), schema, strict: None };
        let request =
            GenerateRequest { response_format: ResponseFormat::JsonSchema(format), ..asking("".into()) };
        assert_eq!(whole_prompt_tokens(&request), 4 + tokens_of(6 + 3 + written));
        let attached = |value: Value| {
            let content = Content::Parts(vec![ContentPart::Other(value)]);
            whole_prompt_tokens(&asking(content)) - 4
        };
        let data = "A".repeat(1_600_000);
        let file = json!({ "type": "file", "file": { "file_data": data } });
        let sound = json!({ "type": "input_audio", "input_audio": { "data": data, "format": "mp3" } });
        assert_eq!(attached(file.clone()), json_bytes(&file).div_ceil(16));
        assert_eq!(attached(sound.clone()), json_bytes(&sound).div_ceil(256));
        assert_eq!(attached(json!({ "type": "file", "file": { "file_id": "f" } })), 1_300);
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
