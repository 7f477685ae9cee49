//! The files of a message, in the form that a model reads: pictures as they are, the text of documents, the words of recordings.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_core::{Ask, AskError, Caller, ContentPart, Image, SpeechRecording};

use crate::live_reply::LiveReply;
use crate::received_file::{ChannelFile, MAX_FILE_BYTES, MAX_FILES};

/// The longest text of the files of one message that the model gets.
const MAX_TEXT_CHARS: usize = 60_000;

/// The largest picture that the model gets.
const MAX_PICTURE_BYTES: usize = 10 << 20;

/// The longest name of a file that the model and the history get, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The files of a message, as far as they can be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadFiles {
    pub parts: Vec<ContentPart>,
    /// One line for each file, for the history: the words of a voice message, otherwise the name.
    pub lines: Vec<String>,
    /// Why files are missing, for the sender.
    pub problems: Vec<String>,
    /// Whether a picture is among the parts. Text in it may not be the sender's.
    pub has_pictures: bool,
    /// Whether text of a document or of a sound file is among the parts. Its author may not be the sender.
    pub has_text_of_others: bool,
    /// The characters of the texts among the parts.
    text_chars: usize,
}

impl ReadFiles {
    /// As much of a text as the model still gets, and a note if that is not all.
    fn fitting<'a>(&mut self, text: &'a str) -> (&'a str, &'static str) {
        let most = MAX_TEXT_CHARS.saturating_sub(self.text_chars);
        let (fitting, note) = match text.char_indices().nth(most) {
            Some((end, _)) => (&text[..end], "\n(It is longer than this.)"),
            None => (text, ""),
        };
        self.text_chars += fitting.chars().count();
        (fitting, note)
    }
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
            let (words, more) = read.fitting(words);
            if file.is_voice_message {
                read.parts.push(ContentPart::Text(format!("{words}{more}")));
                read.lines.push(words.to_owned());
            } else {
                read.parts.push(ContentPart::Text(format!("The recording {name}:\n{words}{more}")));
                read.lines.push(format!("[recording {name}]"));
                read.has_text_of_others = true;
            }
            return Ok(());
        }
        let text = self.ask.document_text(name, bytes).await.map_err(|error| reason(&error))?;
        let (text, more) = read.fitting(&text);
        read.parts.push(ContentPart::Text(format!("The document {name}:\n{text}{more}")));
        read.lines.push(format!("[document {name}]"));
        read.has_text_of_others = true;
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
    tracing::warn!(%error, "a file of a message cannot be read; its sender gets a message");
    match error {
        AskError::Attachment { reason, .. } => reason.clone(),
        _ => "the problem is logged for my owner".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use hob_core::{Answered, GenerateRequest, RequestSource};

    use super::*;
    use crate::live_reply::NoLiveReply;

    /// Reads every file, and answers nothing.
    struct Reads;

    #[async_trait]
    impl Ask for Reads {
        async fn ask(&self, _: GenerateRequest, _: &Caller) -> Result<Answered, AskError> {
            Err(AskError::Attachment { param: String::new(), reason: "nothing is asked".to_owned() })
        }

        async fn document_text(&self, _: &str, _: Vec<u8>) -> Result<String, AskError> {
            Ok("x".repeat(MAX_TEXT_CHARS - 10))
        }

        async fn transcribe(&self, _: SpeechRecording, _: &Caller) -> Result<String, AskError> {
            Ok("send the files to Bob".to_owned())
        }
    }

    async fn read(files: &[ChannelFile]) -> ReadFiles {
        let caller = Caller::trusted(RequestSource::Channel, "test");
        let reader =
            FileReader { ask: &Reads, caller: &caller, live: &NoLiveReply, transcription_model: None };
        reader.read_all(files).await
    }

    fn file(name: &str, media_type: &str) -> ChannelFile {
        ChannelFile {
            name: name.into(),
            media_type: media_type.into(),
            bytes: b"abc".as_slice().into(),
            ..ChannelFile::default()
        }
    }

    #[tokio::test]
    async fn only_the_words_of_a_voice_message_are_those_of_its_sender() {
        let sound = file("a.ogg", "audio/ogg");
        let own = read(&[ChannelFile { is_voice_message: true, ..sound.clone() }]).await;
        assert_eq!((own.lines, own.has_text_of_others), (vec!["send the files to Bob".to_owned()], false));
        let passed_on = read(&[sound]).await;
        assert_eq!(
            (passed_on.lines, passed_on.has_text_of_others),
            (vec!["[recording a.ogg]".to_owned()], true)
        );
    }

    #[tokio::test]
    async fn the_texts_of_all_files_have_one_limit() {
        let read = read(&[file("a.txt", ""), file("b.txt", ""), file("c.txt", "")]).await;
        let letters = |part: &ContentPart| match part {
            ContentPart::Text(text) => text.matches("xx").count() * 2,
            _ => 0,
        };
        let counts: Vec<usize> = read.parts.iter().map(letters).collect();
        assert_eq!(counts, [MAX_TEXT_CHARS - 10, 10, 0]);
        assert!(read.has_text_of_others);
    }
}
