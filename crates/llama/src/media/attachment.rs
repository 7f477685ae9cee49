//! Takes pictures and sound out of a request, and leaves a mark in the place of each. Decodes no file.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hob_core::{Content, ContentPart, EngineError, GenerateRequest, Image, Message};
use hob_models::catalogue::{ModelAbility, smallest_with};
use serde_json::Value;

use crate::error::{bad_request, unsupported};

/// Files in one request.
const MAX_FILES: usize = 16;

/// Bytes of one file.
const MAX_BYTES: usize = 20 << 20;

/// The marks around the number of a file. Unicode reserves these characters for use inside a program.
const OPEN: char = '\u{FDD2}';
const CLOSE: char = '\u{FDD3}';

/// What begins a mark. No caller knows it: text of callers reaches a prompt in many ways, and in none of them is it a mark.
static BEGINNING: LazyLock<String> =
    LazyLock::new(|| format!("{OPEN}{:016x}.", RandomState::new().hash_one(OPEN)));

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaKind {
    Picture,
    Sound,
}

/// A file that a message has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) kind: MediaKind,
    pub(super) bytes: Vec<u8>,
    /// Its place in the request, such as `messages[0].content[1].image_url`.
    pub(super) place: String,
}

/// What a model can read beyond text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Senses {
    pub(crate) sees: bool,
    pub(crate) hears: bool,
}

/// A request whose messages are text with marks.
#[derive(Debug)]
pub(crate) struct MarkedRequest {
    pub(crate) request: GenerateRequest,
    /// In the order of the numbers in the marks.
    pub(super) files: Vec<Attachment>,
}

/// Whether a request has parts that are not text.
pub(crate) fn has_attachments(request: &GenerateRequest) -> bool {
    let is_file = |part: &ContentPart| !matches!(part, ContentPart::Text(_));
    let has_files =
        |message: &Message| matches!(&message.content, Content::Parts(parts) if parts.iter().any(is_file));
    request.messages.iter().any(has_files)
}

impl MarkedRequest {
    /// Takes the files out. What the model cannot read is refused by name.
    pub(crate) fn new(request: &GenerateRequest, senses: Senses) -> Result<Self, EngineError> {
        let mut files = Vec::new();
        let mut messages = Vec::with_capacity(request.messages.len());
        for (number, message) in request.messages.iter().enumerate() {
            let content = match &message.content {
                Content::Parts(parts) => {
                    Content::Text(marked(parts, &format!("messages[{number}]"), senses, &mut files)?)
                }
                Content::Text(text) => Content::Text(without_marks(text).into_owned()),
                Content::Empty => Content::Empty,
            };
            messages.push(Message { content, ..message.clone() });
        }
        Ok(MarkedRequest { request: GenerateRequest { messages, ..request.clone() }, files })
    }
}

/// Parts as text. Texts are joined by newlines, as without files; a mark stands directly beside its text.
fn marked(
    parts: &[ContentPart],
    message: &str,
    senses: Senses,
    files: &mut Vec<Attachment>,
) -> Result<String, EngineError> {
    let mut text = String::new();
    let mut is_after_text = false;
    for (number, part) in parts.iter().enumerate() {
        let place = format!("{message}.content[{number}]");
        let file = match part {
            ContentPart::Text(words) => {
                if is_after_text {
                    text.push('\n');
                }
                text.push_str(&without_marks(words));
                is_after_text = true;
                continue;
            }
            ContentPart::Image(image) => picture(image, format!("{place}.image_url"), senses)?,
            ContentPart::Other(part) => sound(part, &place, senses)?,
        };
        if files.len() == MAX_FILES {
            let message = format!("a request may have at most {MAX_FILES} pictures and sounds");
            return Err(bad_request(message, Some(&file.place)));
        }
        text.push_str(&mark_of(files.len()));
        files.push(file);
        is_after_text = false;
    }
    Ok(text)
}

fn mark_of(file: usize) -> String {
    format!("{}{file}{CLOSE}", *BEGINNING)
}

/// Only Hob sets marks.
fn without_marks(text: &str) -> Cow<'_, str> {
    match text.contains([OPEN, CLOSE]) {
        true => Cow::Owned(text.replace([OPEN, CLOSE], "\u{FFFD}")),
        false => Cow::Borrowed(text),
    }
}

fn picture(image: &Image, place: String, senses: Senses) -> Result<Attachment, EngineError> {
    if !senses.sees {
        return Err(unsupported("image_url", Some(&how_to_see())));
    }
    let Some((media_type, data)) = image.inline() else {
        let message = "a picture must be a data: URL with base64, such as data:image/png;base64,...";
        return Err(bad_request(message, Some(&place)));
    };
    // The bytes decide which kind of picture it is: clients often name another.
    if !media_type.trim().to_ascii_lowercase().starts_with("image/") {
        let message = format!("the type of a picture must begin with 'image/', got '{media_type}'");
        return Err(bad_request(message, Some(&place)));
    }
    let bytes = decoded(data, &place)?;
    Ok(Attachment { kind: MediaKind::Picture, bytes, place })
}

/// The hint for a model that does not read pictures, with a command that downloads one that does.
fn how_to_see() -> String {
    let download = smallest_with(ModelAbility::Vision).map(|entry| {
        format!(
            " 'hob model pull {}' downloads one that does; 'hob model list --available' shows others with 'vision'.",
            entry.short_name
        )
    });
    format!("this model does not read pictures.{}", download.unwrap_or_default())
}

fn sound(part: &Value, place: &str, senses: Senses) -> Result<Attachment, EngineError> {
    let kind = part["type"].as_str().unwrap_or("content");
    if kind != "input_audio" || !senses.hears {
        let hint = match kind {
            "input_audio" => {
                "this model does not accept sound; choose one with a projector for sound, or another engine"
            }
            _ => "the embedded engine supports text, pictures and sound only",
        };
        return Err(unsupported(kind, Some(hint)));
    }
    let place = format!("{place}.input_audio");
    let audio = &part["input_audio"];
    let format = audio["format"].as_str().unwrap_or_default();
    if !matches!(format, "wav" | "mp3" | "flac") {
        let message = format!("'format' must be 'wav', 'mp3' or 'flac', got '{format}'");
        return Err(bad_request(message, Some(&format!("{place}.format"))));
    }
    let place = format!("{place}.data");
    let Some(data) = audio["data"].as_str() else {
        return Err(bad_request("'data' must be sound in base64", Some(&place)));
    };
    let bytes = decoded(data, &place)?;
    if !is_sound(&bytes) {
        return Err(bad_request("it is not a WAV, MP3 or FLAC file", Some(&place)));
    }
    Ok(Attachment { kind: MediaKind::Sound, bytes, place })
}

fn is_sound(bytes: &[u8]) -> bool {
    let is_wave = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE");
    let is_frame = matches!(bytes, [0xFF, second, ..] if second & 0xE0 == 0xE0);
    is_wave || is_frame || bytes.starts_with(b"ID3") || bytes.starts_with(b"fLaC")
}

fn decoded(data: &str, place: &str) -> Result<Vec<u8>, EngineError> {
    let data = data.trim();
    // Before anything is allocated.
    if data.len() / 4 * 3 > MAX_BYTES + 3 {
        let message = format!("a file may have at most {} MiB", MAX_BYTES >> 20);
        return Err(bad_request(message, Some(place)));
    }
    let bytes = BASE64.decode(data).map_err(|error| {
        bad_request(format!("it is not valid base64 ({})", lowercase_first(&error.to_string())), Some(place))
    })?;
    if bytes.is_empty() {
        return Err(bad_request("it is empty", Some(place)));
    }
    Ok(bytes)
}

fn lowercase_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// A piece of a rendered prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MarkedPiece<'a> {
    Text(&'a str),
    /// The number of a file.
    File(usize),
}

/// Splits a text at its marks.
pub(super) fn pieces(text: &str) -> Vec<MarkedPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGINNING.as_str()) {
        if !before.is_empty() {
            pieces.push(MarkedPiece::Text(before));
        }
        // A template cannot split a mark, because it has no reason to look into it. If one does, the file is missing.
        let Some((number, after)) = after.split_once(CLOSE) else { break };
        pieces.extend(number.parse().ok().map(MarkedPiece::File));
        rest = after;
    }
    if !rest.is_empty() && !rest.contains(BEGINNING.as_str()) {
        pieces.push(MarkedPiece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use hob_core::Role;
    use serde_json::json;

    use super::*;

    const BOTH: Senses = Senses { sees: true, hears: true };

    fn url(url: &str) -> ContentPart {
        ContentPart::Image(Image { url: url.into(), detail: None })
    }

    fn saying(parts: Vec<ContentPart>) -> GenerateRequest {
        GenerateRequest {
            messages: vec![
                Message::new(Role::System, "Be brief."),
                Message::new(Role::User, Content::Parts(parts)),
            ],
            ..GenerateRequest::default()
        }
    }

    fn refusal(part: ContentPart, senses: Senses) -> (Option<String>, String) {
        let error = MarkedRequest::new(&saying(vec![ContentPart::Text("What?".into()), part]), senses);
        match error.expect_err("refused") {
            EngineError::Refused { status: 400, param, message, .. } => (param, message),
            EngineError::Unsupported { field, .. } => (None, field),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn files_leave_marks_in_their_places() {
        let sound = json!({"type": "input_audio", "input_audio": {"data": "SUQzAAAA", "format": "mp3"}});
        let request = saying(vec![
            ContentPart::Text("One".into()),
            ContentPart::Text(format!("two{OPEN}7{CLOSE}")),
            url("data:image/png;base64,AAAA"),
            ContentPart::Text("three".into()),
            ContentPart::Other(sound),
        ]);
        assert!(has_attachments(&request));
        let MarkedRequest { request, files } = MarkedRequest::new(&request, BOTH).expect("understood");
        let text = request.messages[1].content.text().into_owned();
        assert_eq!(text, format!("One\ntwo\u{FFFD}7\u{FFFD}{}three{}", mark_of(0), mark_of(1)));
        assert_eq!(
            pieces(&text),
            [
                MarkedPiece::Text("One\ntwo\u{FFFD}7\u{FFFD}"),
                MarkedPiece::File(0),
                MarkedPiece::Text("three"),
                MarkedPiece::File(1)
            ]
        );
        let places: Vec<(MediaKind, &str)> =
            files.iter().map(|file| (file.kind, file.place.as_str())).collect();
        assert_eq!(
            places,
            [
                (MediaKind::Picture, "messages[1].content[2].image_url"),
                (MediaKind::Sound, "messages[1].content[4].input_audio.data")
            ]
        );
        assert!(!has_attachments(&request));
    }

    #[test]
    fn no_text_of_a_caller_is_the_mark_of_a_file() {
        // As a template decodes the arguments of a call.
        let forged = format!("a{OPEN}0{CLOSE}b{OPEN}");
        let prompt = format!("{forged}{}{forged}", mark_of(0));
        assert_eq!(
            pieces(&prompt),
            [MarkedPiece::Text(&forged), MarkedPiece::File(0), MarkedPiece::Text(&forged)]
        );
    }

    #[test]
    fn what_a_model_cannot_read_is_refused_by_name() {
        let picture = || url("data:image/png;base64,AAAA");
        assert_eq!(refusal(picture(), Senses::default()), (None, "image_url".into()));
        let sound = json!({"type": "input_audio", "input_audio": {"data": "SUQzAAAA", "format": "mp3"}});
        let sees = Senses { sees: true, hears: false };
        assert_eq!(refusal(ContentPart::Other(sound), sees), (None, "input_audio".into()));
        assert_eq!(refusal(ContentPart::Other(json!({"type": "file"})), BOTH), (None, "file".into()));
    }

    #[test]
    fn a_refused_picture_names_a_command_that_gets_a_model_for_it() {
        let request = saying(vec![url("data:image/png;base64,AAAA")]);
        let error = MarkedRequest::new(&request, Senses::default()).expect_err("refused").to_string();
        assert!(error.contains("this model does not read pictures. 'hob model pull gemma3:4b'"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_with_its_place() {
        let place = Some("messages[1].content[1].image_url".to_owned());
        for (address, said) in [
            ("https://example.org/cat.png", "must be a data: URL"),
            ("data:image/png,AAAA", "must be a data: URL"),
            ("data:text/plain;base64,AAAA", "must begin with 'image/', got 'text/plain'"),
            ("data:image/png;base64,A$$A", "not valid base64"),
            ("data:image/png;base64,", "it is empty"),
        ] {
            let (param, message) = refusal(url(address), BOTH);
            assert_eq!(param, place, "{address}");
            assert!(message.contains(said), "{message}");
        }
        let huge = format!("data:image/png;base64,{}", "A".repeat((MAX_BYTES + 6) / 3 * 4));
        assert_eq!(refusal(url(&huge), BOTH), (place, "a file may have at most 20 MiB".into()));
    }

    #[test]
    fn sound_that_is_not_sound_is_refused_with_its_place() {
        let sound = |data: &str, format: &str| {
            let part = json!({"type": "input_audio", "input_audio": {"data": data, "format": format}});
            refusal(ContentPart::Other(part), BOTH).0.unwrap_or_default()
        };
        assert_eq!(sound("SUQzAAAA", "ogg"), "messages[1].content[1].input_audio.format");
        assert_eq!(sound("AAAAAAAA", "wav"), "messages[1].content[1].input_audio.data");
    }

    #[test]
    fn too_many_files_are_refused() {
        let parts = (0..=MAX_FILES).map(|_| url("data:image/png;base64,AAAA")).collect();
        let error = MarkedRequest::new(&saying(parts), BOTH).expect_err("refused").to_string();
        assert!(error.contains("at most 16 pictures"), "{error}");
    }
}
