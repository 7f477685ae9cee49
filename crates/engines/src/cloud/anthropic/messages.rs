//! The conversation in Anthropic's format: turns of blocks that alternate between `user` and `assistant`. System
//! messages are separate, and tool results are part of the user's turn.

use std::borrow::Cow;

use hob_core::{Image, Message, Role, THINKING_BLOCKS, call_id};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cloud::translate::{self, RoleTurn};
use crate::wire::unsupported_field::UnsupportedField;

/// One block of a turn.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
    },
}

/// Where the data of an image or document is.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

#[derive(Debug, Serialize)]
pub(super) struct WireTurn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// The system messages and the turns.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Block<'a>>,
    pub(super) turns: Vec<WireTurn<'a>>,
}

impl<'a> Conversation<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Result<Self, UnsupportedField> {
        let mut system = Vec::new();
        let mut turns: Vec<RoleTurn<Block<'a>>> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            translate::no_author(message, index)?;
            match message.role {
                Role::System => system.extend(translate::texts(message, index)?.into_iter().filter_map(text)),
                Role::User => translate::say(&mut turns, "user", blocks(message, index)?),
                Role::Assistant => translate::say(&mut turns, "assistant", spoken(message, index)?),
                Role::Tool => translate::say(&mut turns, "user", vec![result(message, index)?]),
            }
        }
        let turns =
            turns.into_iter().map(|RoleTurn { role, pieces }| WireTurn { role, content: pieces }).collect();
        Ok(Conversation { system, turns })
    }
}

/// Anthropic rejects a block that is only white space.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

/// Text, images and PDF files.
fn blocks(message: &Message, index: usize) -> Result<Vec<Block<'_>>, UnsupportedField> {
    translate::content_pieces(message, index, text, picture, document)
}

/// A PDF file of the chat-completions format.
fn document(part: &Value) -> Option<Block<'_>> {
    let (media_type, data) = translate::pdf(part)?;
    let title = part["file"]["filename"].as_str();
    Some(Block::Document { source: Source::Base64 { media_type, data }, title })
}

fn picture(image: &Image, message: usize, part: usize) -> Result<Block<'_>, UnsupportedField> {
    let url = image.url.as_str();
    let source = match image.inline() {
        Some((media_type, data)) => Source::Base64 { media_type, data },
        None if url.starts_with("https://") || url.starts_with("http://") => Source::Url { url },
        None => {
            return Err(UnsupportedField::because(
                translate::image_field(message, part),
                "an image must be a base64 data: URL or an http(s) URL",
            ));
        }
    };
    Ok(Block::Image { source })
}

/// The reasoning that Anthropic requires back, the assistant's text, then its calls.
fn spoken(message: &Message, index: usize) -> Result<Vec<Block<'_>>, UnsupportedField> {
    let mut blocks = sealed(message);
    blocks.extend(translate::texts(message, index)?.into_iter().filter_map(text));
    for (position, call) in message.tool_calls.iter().enumerate() {
        blocks.push(Block::ToolUse {
            id: accepted_id(&call.id),
            name: &call.name,
            input: translate::arguments(call, index, position)?,
        });
    }
    Ok(blocks)
}

/// The id of a call. Anthropic refuses those with other characters, such as Kimi's `functions.NAME:0`.
fn accepted_id(id: &str) -> Cow<'_, str> {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    call_id::accepted(id, |id| !id.is_empty() && id.bytes().all(is_accepted))
}

/// The reasoning that Anthropic signed or hid. It refuses what it did not sign.
fn sealed(message: &Message) -> Vec<Block<'_>> {
    let blocks = message.extra.get(THINKING_BLOCKS).and_then(Value::as_array);
    blocks.into_iter().flatten().filter_map(sealed_block).collect()
}

fn sealed_block(block: &Value) -> Option<Block<'_>> {
    let text = |field: &str| block.get(field).and_then(Value::as_str);
    match text("type")? {
        "thinking" => Some(Block::Thinking {
            thinking: text("thinking").unwrap_or_default(),
            signature: text("signature").filter(|signature| !signature.is_empty())?,
        }),
        "redacted_thinking" => Some(Block::RedactedThinking { data: text("data")? }),
        _ => None,
    }
}

fn result(message: &Message, index: usize) -> Result<Block<'_>, UnsupportedField> {
    Ok(Block::ToolResult {
        tool_use_id: accepted_id(translate::answered_call(message, index)?),
        content: blocks(message, index)?,
    })
}
