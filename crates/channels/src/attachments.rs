//! The files of a message, in the form that a model reads: pictures as they are, the text of documents, the words of recordings.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_core::{Ask, AskError, Caller, ContentPart, Image, SpeechRecording};

use crate::file::{ChannelFile, MAX_FILE_BYTES, MAX_FILES};
use crate::live_reply::LiveReply;

/// The longest text of a document that the model gets.
const MAX_DOCUMENT_CHARS: usize = 60_000;

/// The largest picture that the model gets.
const MAX_PICTURE_BYTES: usize = 10 << 20;

/// The longest name of a file that the model and the history get, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The files of a message, as far as they can be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadFiles {
    pub parts: Vec<ContentPart>,
    /// One line for each file, for the history: the words of a recording, otherwise the name.
    pub lines: Vec<String>,
    /// Why files are missing, for the sender.
    pub problems: Vec<String>,
    /// Whether a picture is among the parts. Text in it may not be the sender's.
    pub has_pictures: bool,
    /// Whether text of a document is among the parts. Its author may not be the sender.
    pub has_documents: bool,
}

/// What reads files.
pub(crate) struct FileReader<'a> {
    pub ask: &'a dyn Ask,
    pub caller: &'a Caller,
    pub live: &'a dyn LiveReply,
    pub transcription_model: Option<&'a str>,
}

impl FileReader<'_> {
    pub async fn read_all(&self, files: &[ChannelFile]) -> ReadFiles {
        let mut read = ReadFiles::default();
        for file in files.iter().take(MAX_FILES) {
            let name = shown_name(file);
            if let Err(reason) = self.read(file, &name, &mut read).await {
                read.lines.push(format!("[{name}, which could not be read]"));
                read.problems.push(format!("I cannot read {name}: {reason}."));
            }
        }
        read
    }

    async fn read(&self, file: &ChannelFile, name: &str, read: &mut ReadFiles) -> Result<(), String> {
        let bytes = self.live.load(file).await?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(format!("it is larger than {} MB", MAX_FILE_BYTES >> 20));
        }
        if let Some(media_type) = Image::media_type(&bytes) {
            if bytes.len() > MAX_PICTURE_BYTES {
                return Err(format!("it is larger than {} MB", MAX_PICTURE_BYTES >> 20));
            }
            let url = format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(&bytes));
            read.parts.push(ContentPart::Image(Image { url, detail: None }));
            read.lines.push(format!("[picture {name}]"));
            read.has_pictures = true;
            return Ok(());
        }
        if is_recording(file) {
            let recording = SpeechRecording {
                name: name.to_owned(),
                media_type: file.media_type.clone(),
                bytes,
                model: self.transcription_model.map(str::to_owned),
            };
            let words = self.ask.transcribe(recording, self.caller).await.map_err(|error| reason(&error))?;
            let words = words.trim();
            if words.is_empty() {
                return Err("I hear no words in it".to_owned());
            }
            read.parts.push(ContentPart::Text(words.to_owned()));
            read.lines.push(words.to_owned());
            return Ok(());
        }
        let text = self.ask.document_text(name, bytes).await.map_err(|error| reason(&error))?;
        let (text, is_cut) = match text.char_indices().nth(MAX_DOCUMENT_CHARS) {
            Some((end, _)) => (&text[..end], true),
            None => (text.as_str(), false),
        };
        let more = if is_cut { "\n(The document is longer than this.)" } else { "" };
        read.parts.push(ContentPart::Text(format!("The document {name}:\n{text}{more}")));
        read.lines.push(format!("[document {name}]"));
        read.has_documents = true;
        Ok(())
    }
}

fn is_recording(file: &ChannelFile) -> bool {
    file.media_type.starts_with("audio/") || file.media_type == "application/ogg"
}

/// A name on one line.
fn shown_name(file: &ChannelFile) -> String {
    let name: String = file.name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS).collect();
    if name.trim().is_empty() { "the file".to_owned() } else { name }
}

/// A reason that a sender may read: no addresses, no names of models.
fn reason(error: &AskError) -> String {
    tracing::warn!(%error, "cannot read a file of a message");
    match error {
        AskError::Attachment { reason, .. } => reason.clone(),
        _ => "the problem is logged for my owner".to_owned(),
    }
}
