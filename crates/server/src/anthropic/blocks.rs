//! Blocks of content as clients write them: text, images, documents, tool calls and their results, reasoning.

use std::fmt;

use hob_core::message::file_text;
use hob_core::{Content, ContentPart, Image};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::error::{ApiError, ApiResult};
use crate::openai::ignored_fields::IgnoredFields;

/// A hint to store a prefix of the prompt. Local engines do that by themselves.
const CACHE_CONTROL: &str = "cache_control";

/// How a warning names the place of a block.
const BLOCK: &str = "messages[].content[]";

/// Blocks of tools that run on Anthropic's servers, and of its files. Nothing here can run them again.
const SERVER_BLOCKS: [&str; 11] = [
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "mcp_tool_result",
    "mcp_tool_use",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// Content before it is checked: a string, or a list of blocks.
#[derive(Debug)]
pub(crate) enum WireContent {
    Text(String),
    Blocks(Vec<WireBlock>),
}

/// Any block. Each kind uses a few of the fields.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WireBlock {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    /// Of an image or document an object, of a search result an address.
    pub(super) source: Option<Value>,
    pub(super) title: Option<String>,
    pub(super) context: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Value>,
    pub(super) tool_use_id: Option<String>,
    pub(super) content: Option<Value>,
    pub(super) is_error: Option<bool>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) tool_name: Option<String>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// The first byte shows which of the two it is, so nothing is buffered.
impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = WireContent;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or an array of content blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<WireContent, E> {
                Ok(WireContent::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<WireContent, E> {
                Ok(WireContent::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<WireContent, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = sequence.next_element()? {
                    blocks.push(block);
                }
                Ok(WireContent::Blocks(blocks))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl WireContent {
    /// Reads content inside a block, at `path`.
    fn inside(value: Option<Value>, path: &dyn fmt::Display) -> ApiResult<Vec<WireBlock>> {
        let content = match value {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(value) => WireContent::deserialize(value),
        };
        let content =
            content.map_err(|error| ApiError::invalid(path.to_string(), format!("{path}: {error}")))?;
        Ok(content.into_blocks())
    }

    pub(super) fn into_blocks(self) -> Vec<WireBlock> {
        match self {
            WireContent::Text(text) => vec![WireBlock::text(text)],
            WireContent::Blocks(blocks) => blocks,
        }
    }

    /// The texts of content that may have nothing else, such as `system`.
    pub(super) fn into_texts(
        self,
        path: &dyn fmt::Display,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Vec<String>> {
        let mut texts = Vec::new();
        for (index, block) in self.into_blocks().into_iter().enumerate() {
            let path = format_args!("{path}[{index}]");
            if block.kind != "text" {
                return Err(unknown_kind(&path, &block.kind, "only 'text' can be here"));
            }
            texts.push(block.into_text(&path, ignored)?);
        }
        Ok(texts)
    }
}

/// What a block of a user's message, or of a tool's result, says.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) parts: Vec<ContentPart>,
    /// Whether these are the parts of a document.
    is_document: bool,
}

impl Said {
    pub(super) fn text(&mut self, text: String) {
        self.parts.push(ContentPart::Text(text));
    }

    /// What a document says, before it is marked.
    fn of_document() -> Self {
        Said { parts: Vec::new(), is_document: true }
    }

    /// Adds what a document or a search result says. Its texts are marked as those of a file: their author need not be the caller.
    /// Only the outermost of nested documents is marked, and has its title once, so that marks do not multiply.
    fn document(&mut self, title: &str, content: Said) {
        if self.is_document {
            self.text(title.to_owned());
            self.parts.extend(content.parts);
            return;
        }
        let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
        if !content.parts.iter().any(is_text) {
            self.text(file_text(title, ""));
        }
        let mut name = title;
        let mut rest = content.parts.into_iter().peekable();
        while let Some(part) = rest.next() {
            let ContentPart::Text(mut text) = part else {
                self.parts.push(part);
                continue;
            };
            while let Some(ContentPart::Text(more)) = rest.next_if(is_text) {
                text.push('\n');
                text.push_str(&more);
            }
            self.text(file_text(name, &text));
            name = "Document, continued";
        }
    }

    /// Plain text where that is enough: more engines accept it.
    pub(super) fn into_content(self) -> Content {
        if self.parts.iter().all(|part| matches!(part, ContentPart::Text(_))) {
            Content::Text(Content::Parts(self.parts).text().into_owned())
        } else {
            Content::Parts(self.parts)
        }
    }
}

impl WireBlock {
    fn text(text: String) -> Self {
        WireBlock {
            kind: "text".to_owned(),
            text: Some(text),
            source: None,
            title: None,
            context: None,
            id: None,
            name: None,
            input: None,
            tool_use_id: None,
            content: None,
            is_error: None,
            thinking: None,
            signature: None,
            data: None,
            tool_name: None,
            rest: Map::new(),
        }
    }

    /// Whether it is the work of Anthropic's own tools, which is skipped with a warning.
    pub(super) fn is_of_server(&self) -> bool {
        SERVER_BLOCKS.contains(&self.kind.as_str())
    }

    /// The error for a field that this kind of block needs.
    pub(super) fn missing(&self, path: &dyn fmt::Display, field: &str) -> ApiError {
        let message = format!("{path}.{field}: a block of type '{}' needs it", self.kind);
        ApiError::invalid(format!("{path}.{field}"), message)
    }

    fn into_text(self, path: &dyn fmt::Display, ignored: &mut IgnoredFields) -> ApiResult<String> {
        note_rest(ignored, BLOCK, &self.rest);
        match self.text {
            Some(text) => Ok(text),
            None => Err(self.missing(path, "text")),
        }
    }

    /// Adds what the block says to `said`. `path` is its place in the request.
    pub(super) fn say(
        mut self,
        path: &dyn fmt::Display,
        said: &mut Said,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        match self.kind.as_str() {
            "text" => said.text(self.into_text(path, ignored)?),
            "image" => {
                note_rest(ignored, BLOCK, &self.rest);
                let source = self.source.take().ok_or_else(|| self.missing(path, "source"))?;
                let url = Source::read(source, path)?.into_image(path)?;
                said.parts.push(ContentPart::Image(Image { url, detail: None }));
            }
            "document" => self.say_document(path, said, ignored)?,
            "search_result" => {
                note_rest(ignored, BLOCK, &self.rest);
                let address = self.source.as_ref().and_then(Value::as_str).unwrap_or_default();
                let title = self.title.as_deref().unwrap_or("Search result");
                let mut content = Said::of_document();
                if !address.is_empty() {
                    content.text(address.to_owned());
                }
                for (index, block) in WireContent::inside(self.content, &format_args!("{path}.content"))?
                    .into_iter()
                    .enumerate()
                {
                    block.say(&format_args!("{path}.content[{index}]"), &mut content, ignored)?;
                }
                said.document(title, content);
            }
            // A tool search found this tool; from now on the model has it.
            "tool_reference" => {
                let name = self.tool_name.as_deref().ok_or_else(|| self.missing(path, "tool_name"))?;
                said.text(format!("The tool {name} is available now."));
            }
            _ if self.is_of_server() => ignored.note(&format!("messages[].content[].{}", self.kind)),
            kind => {
                let known = "Known here are 'text', 'image', 'document', 'search_result', 'tool_reference' and 'tool_result'";
                return Err(unknown_kind(path, kind, known));
            }
        }
        Ok(())
    }

    /// A document: its text as text, a file as a `file` part of chat completions, which some engines read.
    fn say_document(
        mut self,
        path: &dyn fmt::Display,
        said: &mut Said,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        if self.rest.get("citations").is_some_and(|citations| citations["enabled"] == false) {
            self.rest.remove("citations");
        }
        note_rest(ignored, BLOCK, &self.rest);
        let source = self.source.take().ok_or_else(|| self.missing(path, "source"))?;
        let title = self.title.as_deref().unwrap_or("Document");
        let mut document = Said::of_document();
        match Source::read(source, path)? {
            Source::Text { data } => {
                document.parts.extend(self.context.map(ContentPart::Text));
                document.text(data);
                said.document(title, document);
            }
            Source::Content { content } => {
                document.parts.extend(self.context.map(ContentPart::Text));
                let path = format_args!("{path}.source.content");
                for (index, block) in WireContent::inside(Some(content), &path)?.into_iter().enumerate() {
                    block.say(&format_args!("{path}[{index}]"), &mut document, ignored)?;
                }
                said.document(title, document);
            }
            Source::Base64 { media_type, data } => {
                self.say_file("file_data", format!("data:{media_type};base64,{data}"), said);
            }
            Source::Url { url } if url.starts_with("data:") => self.say_file("file_data", url, said),
            Source::Url { url } => self.say_file("file_url", url, said),
            Source::File { .. } => return Err(no_files(path)),
        }
        Ok(())
    }

    /// A file as chat completions write it, with what the caller says about it before it.
    fn say_file(self, field: &str, content: String, said: &mut Said) {
        let name = self.title.unwrap_or_else(|| "document.pdf".to_owned());
        if let Some(context) = self.context {
            said.text(file_text(&name, &context));
        }
        let file = json!({ "type": "file", "file": { "filename": name, field: content } });
        said.parts.push(ContentPart::Other(file));
    }

    /// The result of a tool as the parts of a message.
    pub(super) fn into_result(self, path: &dyn fmt::Display, ignored: &mut IgnoredFields) -> ApiResult<Said> {
        note_rest(ignored, BLOCK, &self.rest);
        let mut said = Said::default();
        let path = format_args!("{path}.content");
        for (index, block) in WireContent::inside(self.content, &path)?.into_iter().enumerate() {
            block.say(&format_args!("{path}[{index}]"), &mut said, ignored)?;
        }
        Ok(said)
    }
}

/// Where the data of an image or document is.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", expecting = "an object with a type")]
enum Source {
    Base64 {
        media_type: String,
        data: String,
    },
    Url {
        url: String,
    },
    Text {
        data: String,
    },
    Content {
        content: Value,
    },
    /// A file that was uploaded to Anthropic.
    File {
        #[serde(rename = "file_id")]
        _file_id: String,
    },
}

impl Source {
    fn read(value: Value, path: &dyn fmt::Display) -> ApiResult<Self> {
        let field = format!("{path}.source");
        Source::deserialize(value)
            .map_err(|error| ApiError::invalid(field.as_str(), format!("{field}: {error}")))
    }

    /// The address of an image, which may contain the image itself.
    fn into_image(self, path: &dyn fmt::Display) -> ApiResult<String> {
        match self {
            Source::Base64 { media_type, data } => Ok(format!("data:{media_type};base64,{data}")),
            Source::Url { url } => Ok(url),
            Source::File { .. } => Err(no_files(path)),
            Source::Text { .. } | Source::Content { .. } => {
                let field = format!("{path}.source.type");
                let message = format!("{field}: an image is 'base64' or 'url'");
                Err(ApiError::invalid(field, message))
            }
        }
    }
}

fn no_files(path: &dyn fmt::Display) -> ApiError {
    let field = format!("{path}.source.file_id");
    let message =
        format!("{field}: this server stores no files; send the content itself, as 'base64' or 'text'");
    ApiError::invalid(field, message)
}

pub(super) fn unknown_kind(path: &dyn fmt::Display, kind: &str, hint: &str) -> ApiError {
    let field = format!("{path}.type");
    let message = format!("{field}: '{kind}' is not a supported type of block. {hint}");
    ApiError::invalid(field, message)
}

/// Names fields without effect. The cache hint is on many blocks and is named once.
pub(super) fn note_rest(ignored: &mut IgnoredFields, path: &str, rest: &Map<String, Value>) {
    for (field, value) in rest {
        match field.as_str() {
            _ if value.is_null() => {}
            CACHE_CONTROL => ignored.note(CACHE_CONTROL),
            // Who made the call: always the model itself here.
            "caller" => {}
            // An answer that is sent back has the list, which is empty without a citation.
            "citations" if value.as_array().is_some_and(Vec::is_empty) => {}
            field => ignored.note(&format!("{path}.{field}")),
        }
    }
}
