//! Messages of a conversation.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The author of a message. The role `developer` is read as `System`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// The role's name in all chat wire formats.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// Reads a role as clients write it; `None` for a word that is no role.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "system" | "developer" => Some(Role::System),
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "tool" => Some(Role::Tool),
            _ => None,
        }
    }
}

/// A picture a client attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// A `data:` URL, or the address of a picture that the provider fetches itself.
    pub url: String,
    /// The resolution that the client asks for (`low`, `high`, `auto`).
    pub detail: Option<String>,
}

/// The first bytes of the image formats that models support.
const SIGNATURES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
];

impl Image {
    /// The format of an image by its first bytes. What others say it is may be wrong.
    pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Some("image/webp");
        }
        SIGNATURES.iter().find(|(mark, _)| bytes.starts_with(mark)).map(|(_, media_type)| *media_type)
    }

    /// Media type and base64 data of a `data:` URL.
    pub fn inline(&self) -> Option<(&str, &str)> {
        let (media_type, payload) = self.url.strip_prefix("data:")?.split_once(',')?;
        Some((media_type.strip_suffix(";base64")?, payload))
    }
}

/// One piece of a message that mixes text and pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart {
    Text(String),
    Image(Image),
    /// A part that Hob gives no meaning to (`input_audio`, `file`, `video_url`), as the client wrote it. Engines of the same wire
    /// format get it as it is; any other must refuse it by name.
    Other(Value),
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing at all: an assistant's message that only calls tools.
    Empty,
    Text(String),
    Parts(Vec<ContentPart>),
}

impl Content {
    /// The text parts, joined by newlines, without pictures.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Content::Empty => Cow::Borrowed(""),
            Content::Text(text) => Cow::Borrowed(text),
            Content::Parts(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        ContentPart::Text(text) => Some(text.as_str()),
                        ContentPart::Image(_) | ContentPart::Other(_) => None,
                    })
                    .collect();
                Cow::Owned(texts.join("\n"))
            }
        }
    }

    /// The length of the text parts together.
    pub fn text_bytes(&self) -> u64 {
        match self {
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

    /// The pictures, in order.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let parts = match self {
            Content::Parts(parts) => parts.as_slice(),
            Content::Empty | Content::Text(_) => &[],
        };
        parts.iter().filter_map(|part| match part {
            ContentPart::Image(image) => Some(image),
            ContentPart::Text(_) | ContentPart::Other(_) => None,
        })
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::Text(text)
    }
}

/// A call of a tool by a model, in the form that every engine translates to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them: they may not parse.
    pub arguments: String,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: Content,
    /// Optional author name.
    pub name: Option<String>,
    /// Calls the assistant made (assistant messages).
    pub tool_calls: Vec<ToolCall>,
    /// The call this message answers (tool messages).
    pub tool_call_id: Option<String>,
    /// Fields of the client's message that we give no meaning to; engines of the same wire format get them as they are.
    pub extra: Map<String, Value>,
}

impl Message {
    /// A plain message.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Message {
            role,
            content: content.into(),
            name: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            extra: Map::new(),
        }
    }

    /// The answer of a tool to the call `id`.
    pub fn tool_result(id: impl Into<String>, content: impl Into<Content>) -> Self {
        Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, content) }
    }

    /// The name of the tool that the call `id` was for, looked up in the history before it.
    pub fn tool_name<'a>(history: &'a [Message], id: &str) -> Option<&'a str> {
        history
            .iter()
            .rev()
            .flat_map(|message| &message.tool_calls)
            .find(|call| call.id == id)
            .map(|call| call.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_picture_gives_its_type_and_payload() {
        let inline = Image { url: "data:image/png;base64,AAAA".into(), detail: None };
        assert_eq!(inline.inline(), Some(("image/png", "AAAA")));
        let remote = Image { url: "https://example.org/cat.png".into(), detail: None };
        assert_eq!(remote.inline(), None);
    }

    #[test]
    fn the_text_of_mixed_content_leaves_pictures_out() {
        let picture = Image { url: "data:image/png;base64,AAAA".into(), detail: None };
        let content = Content::Parts(vec![
            ContentPart::Text("look".into()),
            ContentPart::Image(picture.clone()),
            ContentPart::Text("here".into()),
        ]);
        assert_eq!(content.text(), "look\nhere");
        assert_eq!(content.images().collect::<Vec<_>>(), vec![&picture]);
    }

    #[test]
    fn a_tool_answer_finds_the_name_of_its_call() {
        let call = ToolCall { id: "c1".into(), name: "weather".into(), arguments: "{}".into() };
        let history = vec![Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") }];
        assert_eq!(Message::tool_name(&history, "c1"), Some("weather"));
        assert_eq!(Message::tool_name(&history, "c2"), None);
    }
}
