//! Sound and pictures, which Hob passes on to services that have models for them.

use std::pin::Pin;

use futures::Stream;
use serde_json::{Map, Value};

use crate::engine_error::EngineError;
use crate::random_id::random_id;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaTask {
    /// Speech into text of the same language.
    Transcription,
    /// Speech into English text.
    Translation,
    /// Text into speech.
    Speech,
    /// A description into a picture.
    Image,
    /// A picture and a description into another picture.
    ImageEdit,
}

impl MediaTask {
    pub const ALL: [MediaTask; 5] = [
        MediaTask::Transcription,
        MediaTask::Translation,
        MediaTask::Speech,
        MediaTask::Image,
        MediaTask::ImageEdit,
    ];

    /// Its path below `/v1`, in OpenAI's API and in those like it.
    pub fn path(self) -> &'static str {
        match self {
            MediaTask::Transcription => "/audio/transcriptions",
            MediaTask::Translation => "/audio/translations",
            MediaTask::Speech => "/audio/speech",
            MediaTask::Image => "/images/generations",
            MediaTask::ImageEdit => "/images/edits",
        }
    }

    /// A word for it, in records and errors.
    pub fn name(self) -> &'static str {
        match self {
            MediaTask::Transcription => "transcription",
            MediaTask::Translation => "translation",
            MediaTask::Speech => "speech",
            MediaTask::Image => "image_generation",
            MediaTask::ImageEdit => "image_edit",
        }
    }

    /// Whether OpenAI's API documents a field of this name. Such a field says what the answer should be like; it cannot change how an
    /// engine runs or where it connects to.
    pub fn is_documented_field(self, field: &str) -> bool {
        let own: &[&str] = match self {
            MediaTask::Transcription => &[
                "file",
                "language",
                "prompt",
                "temperature",
                "timestamp_granularities[]",
                "include[]",
                "stream",
                "chunking_strategy",
            ],
            MediaTask::Translation => &["file", "prompt", "temperature"],
            MediaTask::Speech => &["input", "voice", "instructions", "speed", "stream_format"],
            MediaTask::Image => &[
                "prompt",
                "n",
                "size",
                "quality",
                "style",
                "background",
                "moderation",
                "output_compression",
                "output_format",
                "partial_images",
                "stream",
                "user",
            ],
            MediaTask::ImageEdit => &[
                "image",
                "image[]",
                "mask",
                "prompt",
                "n",
                "size",
                "quality",
                "background",
                "input_fidelity",
                "output_compression",
                "output_format",
                "partial_images",
                "stream",
                "user",
            ],
        };
        matches!(field, "model" | "response_format") || own.contains(&field)
    }
}

/// A request as its caller wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaForm {
    Json(Map<String, Value>),
    /// A form with a file in it.
    Multipart {
        /// With the boundary between the parts.
        content_type: String,
        body: Vec<u8>,
        /// The names of the parts.
        parts: Vec<String>,
    },
}

/// A part of a form: its name, its content, and what it says about a file. The texts must have no quotes and no line breaks.
#[derive(Debug, PartialEq, Eq)]
pub struct FormPart<'a> {
    pub name: String,
    pub file: Option<FormFile>,
    pub content: &'a [u8],
}

/// What a part says about the file that it is.
#[derive(Debug, PartialEq, Eq)]
pub struct FormFile {
    pub name: String,
    pub content_type: Option<String>,
}

impl MediaForm {
    /// A form of these parts.
    pub fn multipart(parts: &[FormPart<'_>]) -> Self {
        // Random, so that no content contains it.
        let boundary = random_id("hob-");
        let contents: usize = parts.iter().map(|part| part.content.len()).sum();
        let mut body = Vec::with_capacity(contents + (parts.len() + 1) * 256);
        for part in parts {
            let name = &part.name;
            let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
            body.extend_from_slice(head.as_bytes());
            if let Some(FormFile { name, content_type }) = &part.file {
                body.extend_from_slice(format!("; filename=\"{name}\"").as_bytes());
                if let Some(content_type) = content_type {
                    body.extend_from_slice(format!("\r\nContent-Type: {content_type}").as_bytes());
                }
            }
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        MediaForm::Multipart {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            body,
            parts: parts.iter().map(|part| part.name.clone()).collect(),
        }
    }
}

/// Sound or a picture to work on.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaRequest {
    pub model: String,
    pub task: MediaTask,
    pub form: MediaForm,
}

/// Pieces of an answer as they come. Dropping it cancels the work behind it.
pub type MediaStream = Pin<Box<dyn Stream<Item = Result<Vec<u8>, EngineError>> + Send>>;

/// An answer in progress: text, sound or a picture.
pub struct MediaAnswer {
    /// As the engine named it.
    pub content_type: Option<String>,
    pub body: MediaStream,
}
