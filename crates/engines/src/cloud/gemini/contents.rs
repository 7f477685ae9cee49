//! The conversation in Gemini's format: turns of parts that alternate between `user` and `model`. System messages are
//! separate, and function results are part of the user's turn.

use std::borrow::Cow;

use hob_core::call_id::plain;
use hob_core::request_budget::{BODY_VALUES, json_values};
use hob_core::{CalledTools, Image, Message, Role};
use serde::Serialize;
use serde_json::{Map, Value};

use super::call_id;
use crate::cloud::translate::{self, RoleTurn};
use crate::wire::unsupported_field::UnsupportedField;

/// One part of a turn: one of the fields, with an optional signature.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'static, str>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: &'a str,
    response: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct WireTurn<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<RequestPart<'a>>,
}

/// The system messages and the turns.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Option<WireTurn<'a>>,
    pub(super) turns: Vec<WireTurn<'a>>,
}

impl<'a> Conversation<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Result<Self, UnsupportedField> {
        let mut system = Vec::new();
        let mut turns: Vec<RoleTurn<RequestPart<'a>>> = Vec::new();
        let mut called = CalledTools::default();
        let mut values_left = BODY_VALUES;
        for (index, message) in messages.iter().enumerate() {
            translate::no_author(message, index)?;
            match message.role {
                Role::System => system.extend(translate::texts(message, index)?.into_iter().filter_map(text)),
                Role::User => translate::say(&mut turns, "user", parts(message, index)?),
                Role::Assistant => translate::say(&mut turns, "model", spoken(message, index)?),
                Role::Tool => {
                    let answer = response(message, &called, index, &mut values_left)?;
                    translate::say(&mut turns, "user", vec![answer]);
                }
            }
            called.add(message);
        }
        let turns = turns
            .into_iter()
            .map(|RoleTurn { role, pieces }| WireTurn { role: Some(role), parts: pieces })
            .collect();
        Ok(Conversation {
            system: (!system.is_empty()).then_some(WireTurn { role: None, parts: system }),
            turns,
        })
    }
}

/// Google rejects a part without content.
fn text(text: &str) -> Option<RequestPart<'_>> {
    (!text.is_empty()).then(|| RequestPart { text: Some(text), ..RequestPart::default() })
}

/// Text, images and PDF files.
fn parts(message: &Message, index: usize) -> Result<Vec<RequestPart<'_>>, UnsupportedField> {
    translate::content_pieces(message, index, text, picture, document)
}

/// A PDF file of the chat-completions format.
fn document(part: &Value) -> Option<RequestPart<'_>> {
    let (mime_type, data) = translate::pdf(part)?;
    Some(RequestPart { inline_data: Some(Blob { mime_type, data }), ..RequestPart::default() })
}

fn picture(image: &Image, message: usize, part: usize) -> Result<RequestPart<'_>, UnsupportedField> {
    let (mime_type, data) = image.inline().ok_or_else(|| {
        UnsupportedField::because(
            translate::image_field(message, part),
            "Gemini does not fetch images; send a base64 data: URL",
        )
    })?;
    Ok(RequestPart { inline_data: Some(Blob { mime_type, data }), ..RequestPart::default() })
}

/// The model's text, then the calls it made.
fn spoken(message: &Message, index: usize) -> Result<Vec<RequestPart<'_>>, UnsupportedField> {
    let mut parts: Vec<RequestPart<'_>> =
        translate::texts(message, index)?.into_iter().filter_map(text).collect();
    for (position, call) in message.tool_calls.iter().enumerate() {
        let (id, signature) = call_id::split(&call.id);
        parts.push(RequestPart {
            function_call: Some(FunctionCall {
                id,
                name: &call.name,
                args: translate::arguments(call, index, position)?,
            }),
            thought_signature: call_id::signature_of(signature, position == 0),
            ..RequestPart::default()
        });
    }
    Ok(parts)
}

/// The result of a function, under the name from its call. Results are JSON within a text: those with more values than are left in
/// `values_left` stay a text.
fn response<'a>(
    message: &'a Message,
    called: &CalledTools<'a>,
    index: usize,
    values_left: &mut usize,
) -> Result<RequestPart<'a>, UnsupportedField> {
    let id = translate::answered_call(message, index)?;
    let name = called.name(id).ok_or_else(|| {
        UnsupportedField::because(
            format!("messages[{index}].tool_call_id"),
            "no earlier tool call has this id",
        )
    })?;
    let text = translate::texts(message, index)?.join("\n");
    let values = json_values(text.as_bytes(), *values_left);
    let object = match values <= *values_left {
        true => serde_json::from_str::<Map<String, Value>>(&text).ok(),
        false => None,
    };
    if object.is_some() {
        *values_left -= values;
    }
    let response = object.unwrap_or_else(|| Map::from_iter([("result".to_owned(), Value::String(text))]));
    Ok(RequestPart {
        function_response: Some(FunctionResponse { id: plain(id), name, response }),
        ..RequestPart::default()
    })
}
