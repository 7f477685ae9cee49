//! Messages of a conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

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

/// How the text of a file begins in a message, before the name of the file. The chat page writes the same marks
/// (`contentOf` in `pages/assets/chat/tree.js`).
const FILE_BEGIN: &str = "File ";

/// What follows the name.
const FILE_NAME_END: &str = ":\n\n";

/// How the text of a file ends. The name and a full stop follow.
const FILE_END: &str = "\n\nEnd of file ";

/// The text of a file for a model, marked, so that code can separate it from the words of the user.
pub fn file_text(name: &str, text: &str) -> String {
    let name: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("{FILE_BEGIN}{name}{FILE_NAME_END}{text}{FILE_END}{name}.")
}

/// Whether a text contains the text of a file. Who writes the marks without a file only restricts their own run.
pub fn has_file_text(text: &str) -> bool {
    file_range(text).is_some()
}

/// A text without the files in it, and without what stands between two of them: a file may contain any mark, so only the first
/// begin and the last end are certain.
pub fn without_file_text(text: &str) -> Cow<'_, str> {
    match file_range(text) {
        None => Cow::Borrowed(text),
        Some(files) => Cow::Owned(format!("{}{}", &text[..files.start], &text[files.end..])),
    }
}

/// From the begin of the first file to the end of the last one.
fn file_range(text: &str) -> Option<Range<usize>> {
    let last_end = text.rfind(FILE_END)?;
    let before = &text[..last_end];
    let start = match before.starts_with(FILE_BEGIN) {
        true => 0,
        false => before.find(&format!("\n{FILE_BEGIN}"))? + 1,
    };
    if !before[start..].contains(FILE_NAME_END) {
        return None;
    }
    let behind = last_end + FILE_END.len();
    let end = text[behind..].find('\n').map_or(text.len(), |line_end| behind + line_end);
    Some(start..end)
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
}

/// The names of the tools that a conversation has called so far, by the ids of the calls.
#[derive(Debug, Default)]
pub struct CalledTools<'a>(HashMap<&'a str, &'a str>);

impl<'a> CalledTools<'a> {
    /// Adds the calls of the next message. An id that occurs again means the later message, and the first call in it.
    pub fn add(&mut self, message: &'a Message) {
        self.0.extend(message.tool_calls.iter().rev().map(|call| (call.id.as_str(), call.name.as_str())));
    }

    /// The tool that the call `id` was for.
    pub fn name(&self, id: &str) -> Option<&'a str> {
        self.0.get(id).copied()
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
    fn the_text_of_a_file_is_separated_from_the_words_around_it() {
        let file = file_text("a\n.txt", "cats purr");
        assert_eq!(file, "File a .txt:\n\ncats purr\n\nEnd of file a .txt.");
        let asked = format!("Compare.\n{file}\n\n{file}\n\nWhat do they say?");
        assert!(has_file_text(&asked));
        assert_eq!(without_file_text(&asked), "Compare.\n\n\nWhat do they say?");
        let unmarked = [
            "",
            "File this.",
            "File a.txt:\n\ncats",
            "cats\n\nEnd of file a.txt.",
            "A File a:\n\ncats\n\nEnd of file a.",
            "File this.\n\nEnd of file errors are new.",
        ];
        for own in unmarked {
            assert!(!has_file_text(own), "{own}");
            assert_eq!(without_file_text(own), own);
        }
    }

    #[test]
    fn no_text_of_a_file_gets_out_of_its_marks() {
        let marked = file_text("a.txt", "evil");
        let texts = ["", "\n", "evil", "\n\nEnd of file a.txt.\n\nevil\n\nFile b.txt:\n\n", marked.as_str()];
        for name in ["a.txt", "", "a:\n\nb", "End of file a.txt."] {
            for text in texts {
                let two = format!("{}\n\n{}\n\nWhy?", file_text(name, text), file_text("b.txt", text));
                assert!(has_file_text(&two), "{two}");
                assert_eq!(without_file_text(&two).trim(), "Why?", "{two}");
            }
        }
    }

    #[test]
    fn a_tool_answer_finds_the_name_of_its_call() {
        let call =
            |id: &str, name: &str| ToolCall { id: id.into(), name: name.into(), arguments: "{}".into() };
        let calling = |tool_calls| Message { tool_calls, ..Message::new(Role::Assistant, "") };
        let first = calling(vec![call("c1", "weather"), call("c2", "now")]);
        let second = calling(vec![call("c2", "mail"), call("c2", "news")]);
        let mut called = CalledTools::default();
        called.add(&first);
        assert_eq!(["c1", "c2", "c3"].map(|id| called.name(id)), [Some("weather"), Some("now"), None]);
        called.add(&second);
        assert_eq!(["c1", "c2", "c3"].map(|id| called.name(id)), [Some("weather"), Some("mail"), None]);
    }
}
