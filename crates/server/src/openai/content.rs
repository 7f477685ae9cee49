//! The content of a message as clients write it: a string, null, or a list of parts.

use std::fmt;

use hob_core::{Content, ContentPart, Image};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::ignored_fields::IgnoredFields;
use crate::error::{ApiError, ApiResult};

/// Kinds of parts that Hob passes on to engines of the same format.
const PASSED_ON: [&str; 4] = ["input_audio", "audio_url", "file", "video_url"];

/// The content before it is checked.
#[derive(Debug)]
pub(crate) enum WireContent {
    Null,
    Text(String),
    Parts(Vec<WirePart>),
}

#[derive(Debug, serde::Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct WirePart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<WireImage>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(expecting = "an object")]
struct WireImage {
    url: String,
    detail: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The result of a tool without its images and files, and those, for the user's turn after it: few engines accept them in a result.
/// `name` is the tool's.
pub(crate) fn split_result(
    parts: Vec<ContentPart>,
    call: &str,
    name: impl FnOnce() -> String,
) -> (Vec<ContentPart>, Vec<ContentPart>) {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
    let (mut texts, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_text);
    if others.is_empty() {
        return (texts, others);
    }
    if texts.is_empty() {
        texts.push(ContentPart::Text("The result is in the next message.".to_owned()));
    }
    let mut attachments = vec![ContentPart::Text(format!("From the result of {} ({call}):", name()))];
    attachments.extend(others);
    (texts, attachments)
}

/// The first byte shows which of the three it is, so nothing is buffered.
impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = WireContent;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string, null or an array of content parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<WireContent, E> {
                Ok(WireContent::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<WireContent, E> {
                Ok(WireContent::Text(text))
            }

            fn visit_unit<E>(self) -> Result<WireContent, E> {
                Ok(WireContent::Null)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<WireContent, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = sequence.next_element()? {
                    parts.push(part);
                }
                Ok(WireContent::Parts(parts))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl WireContent {
    /// The content of the message at `path`; `None` for null.
    pub(crate) fn resolve(
        self,
        path: &dyn fmt::Display,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Option<Content>> {
        match self {
            WireContent::Null => Ok(None),
            WireContent::Text(text) => Ok(Some(Content::Text(text))),
            WireContent::Parts(parts) => {
                let mut resolved = Vec::with_capacity(parts.len());
                for (index, part) in parts.into_iter().enumerate() {
                    resolved.push(part.resolve(&format_args!("{path}.content[{index}]"), ignored)?);
                }
                Ok(Some(simplest(resolved)))
            }
        }
    }
}

/// A single text needs no parts, and more engines accept plain text.
pub(crate) fn simplest(mut parts: Vec<ContentPart>) -> Content {
    match parts.as_mut_slice() {
        [] => Content::Text(String::new()),
        [ContentPart::Text(text)] => Content::Text(std::mem::take(text)),
        _ => Content::Parts(parts),
    }
}

impl WirePart {
    fn resolve(self, path: &dyn fmt::Display, ignored: &mut IgnoredFields) -> ApiResult<ContentPart> {
        let missing = |field: &str| {
            ApiError::invalid(
                format!("{path}.{field}"),
                format!("a part of type '{}' needs '{field}'", self.kind),
            )
        };
        let part = match self.kind.as_str() {
            "text" => self.text.map(ContentPart::Text).ok_or_else(|| missing("text"))?,
            "refusal" => self.refusal.map(ContentPart::Text).ok_or_else(|| missing("refusal"))?,
            "image_url" => {
                let image = self.image_url.ok_or_else(|| missing("image_url"))?;
                ignored.note_all("messages[].content[].image_url", &image.rest);
                ContentPart::Image(Image { url: image.url, detail: image.detail })
            }
            kind if PASSED_ON.contains(&kind) => {
                if !self.rest.get(kind).is_some_and(Value::is_object) {
                    return Err(missing(kind));
                }
                let mut part = Map::from_iter([("type".to_owned(), Value::String(self.kind))]);
                part.extend(self.rest);
                return Ok(ContentPart::Other(Value::Object(part)));
            }
            other => {
                let known = PASSED_ON.map(|kind| format!("'{kind}'")).join(", ");
                let message = format!(
                    "'{other}' is not a supported type of content. Supported are 'text', 'image_url', {known}"
                );
                return Err(ApiError::invalid(format!("{path}.type"), message));
            }
        };
        ignored.note_all("messages[].content[]", &self.rest);
        Ok(part)
    }
}
