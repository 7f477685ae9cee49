//! The request for the words of a recording, as the API of OpenAI describes it, and its answer.

use futures::StreamExt;
use hob_core::{
    EngineError, FormFile, FormPart, MediaForm, MediaRequest, MediaStream, MediaTask, SpeechRecording,
};
use serde::Deserialize;

/// Parts of the names of models that transcribe.
const SPEECH_MODELS: [&str; 2] = ["whisper", "transcribe"];

/// Bytes of an engine's answer.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Whether a model transcribes, by its name.
pub fn is_speech_model(name: &str) -> bool {
    let name = name.to_lowercase();
    SPEECH_MODELS.iter().any(|part| name.contains(part))
}

pub fn transcription_request(recording: &SpeechRecording, model: String) -> MediaRequest {
    MediaRequest { form: form(recording, &model), model, task: MediaTask::Transcription }
}

#[derive(Deserialize)]
struct Transcript {
    text: String,
}

/// The words in an answer of `engine`.
pub async fn read_transcript(mut answer: MediaStream, engine: &str) -> Result<String, EngineError> {
    let mut received = Vec::new();
    while let Some(piece) = answer.next().await {
        received.extend_from_slice(&piece?);
        if received.len() > MAX_ANSWER_BYTES {
            break;
        }
    }
    let transcript: Result<Transcript, _> = serde_json::from_slice(&received);
    transcript.map(|transcript| transcript.text).map_err(|error| {
        let reason = format!("its transcript is not understood: {error}");
        EngineError::Interrupted { engine: engine.to_owned(), reason }
    })
}

/// The form that OpenAI's API describes.
fn form(recording: &SpeechRecording, model: &str) -> MediaForm {
    // The sender's name of the file is not used: services go by its ending.
    let (media_type, ending) = format_of(&recording.media_type);
    let file = FormFile { name: format!("recording.{ending}"), content_type: Some(media_type.to_owned()) };
    MediaForm::multipart(&[
        part("model", None, model.as_bytes()),
        part("response_format", None, b"json"),
        part("file", Some(file), &recording.bytes),
    ])
}

fn part<'a>(name: &str, file: Option<FormFile>, content: &'a [u8]) -> FormPart<'a> {
    FormPart { name: name.to_owned(), file, content }
}

/// The media type and the ending of a file, for a type that a sender names.
fn format_of(media_type: &str) -> (&'static str, &'static str) {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "audio/mpeg" | "audio/mp3" => ("audio/mpeg", "mp3"),
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => ("audio/mp4", "m4a"),
        "audio/wav" | "audio/x-wav" | "audio/wave" => ("audio/wav", "wav"),
        "audio/webm" => ("audio/webm", "webm"),
        "audio/flac" | "audio/x-flac" => ("audio/flac", "flac"),
        _ => ("audio/ogg", "ogg"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_the_recording_and_nothing_that_its_sender_can_break_it_with() {
        let recording = SpeechRecording {
            name: "a\"\r\nX: y".into(),
            media_type: "audio/x\r\nX: y".into(),
            bytes: b"OggS\0\xff".to_vec(),
            model: None,
        };
        let MediaForm::Multipart { content_type, body, parts } = form(&recording, "whisper-1") else {
            panic!("a form")
        };
        assert_eq!(parts, ["model", "response_format", "file"]);
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let text = String::from_utf8_lossy(&body);
        assert_eq!(text.matches(boundary).count(), 4);
        assert!(!text.contains("X: y"), "{text}");
        assert!(body.windows(6).any(|window| window == b"OggS\0\xff"));
        assert!(text.contains("filename=\"recording.ogg\"\r\nContent-Type: audio/ogg\r\n\r\n"), "{text}");
    }
}
