//! Files in the messages of a request. Hob fetches those that are named by address, by the same guarded way as pictures, and gives
//! their text to engines that read no files. The text is marked as that of a file, because its author need not be the caller.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_agents::FileFetcher;
use hob_agents::builtin::WebFetchOptions;
use hob_core::message::file_text;
use hob_core::{AskError, Content, ContentPart, GenerateRequest};
use hob_engines::hints::reads_files;
use hob_memory::{AttachmentReader, MAX_ATTACHMENT_BYTES, ReaderProcess};
use serde_json::{Value, json};

/// Files of one request.
const MAX_FILES: usize = 16;

/// Fetches and reads files. Whether a caller may name addresses is decided before.
pub struct DocumentReader {
    fetcher: FileFetcher,
    reader: AttachmentReader,
}

impl Default for DocumentReader {
    /// Fetches from the public internet only, and reads in this process.
    fn default() -> Self {
        DocumentReader::new(WebFetchOptions::default(), None)
    }
}

impl DocumentReader {
    /// Fetches from where `options` allow, and reads in the process `reader`.
    pub fn new(options: WebFetchOptions, reader: Option<ReaderProcess>) -> Self {
        let fetcher = FileFetcher::new(options, MAX_ATTACHMENT_BYTES);
        DocumentReader { fetcher, reader: AttachmentReader::new(reader) }
    }

    /// Reads files that callers send.
    pub fn reader(&self) -> &AttachmentReader {
        &self.reader
    }

    /// The text of a file in a message on a channel.
    pub(super) async fn text_of(&self, name: &str, bytes: Vec<u8>) -> Result<String, AskError> {
        let refused = |reason: String| AskError::Attachment { param: name.to_owned(), reason };
        let (reader, owned_name) = (self.reader.clone(), name.to_owned());
        match tokio::task::spawn_blocking(move || reader.read(&owned_name, bytes)).await {
            Ok(Ok(file)) if file.text.trim().is_empty() => Err(refused("it has no text".to_owned())),
            Ok(Ok(file)) => Ok(file.text),
            Ok(Err(error)) => Err(refused(error.to_string())),
            Err(_) => Err(refused("it cannot be read".to_owned())),
        }
    }

    /// Puts the files themselves in the place of their addresses, and text in the place of files that the engine does not read.
    pub(crate) async fn place_all(
        &self,
        request: &mut GenerateRequest,
        engine: &str,
    ) -> Result<(), AskError> {
        for (count, (param, part)) in files(request).into_iter().enumerate() {
            let refused = |reason: String| AskError::Attachment { param: param.clone(), reason };
            if count == MAX_FILES {
                return Err(refused(format!("a request may have at most {MAX_FILES} files")));
            }
            let ContentPart::Other(file) = &*part else { continue };
            let placed = self.placed(&file["file"], engine).await.map_err(refused)?;
            if let Some(placed) = placed {
                *part = placed;
            }
        }
        Ok(())
    }

    /// What replaces a file; `None` leaves it unchanged.
    async fn placed(&self, file: &Value, engine: &str) -> Result<Option<ContentPart>, String> {
        let name = file["filename"].as_str().unwrap_or("file");
        let (bytes, is_fetched) = match (file["file_data"].as_str(), file["file_url"].as_str()) {
            (Some(data), _) => match bytes_of(data) {
                Some(bytes) => (bytes, false),
                // The engine says what is wrong with it.
                None => return Ok(None),
            },
            (None, Some(address)) => (self.fetcher.fetch(address).await?, true),
            (None, None) => return Ok(None),
        };
        if !bytes.starts_with(b"%PDF-") {
            return match (String::from_utf8(bytes), is_fetched) {
                (Ok(text), _) => Ok(Some(ContentPart::Text(file_text(name, &text)))),
                (Err(_), true) => Err("what is at this address is neither a PDF nor text".to_owned()),
                (Err(_), false) => Ok(None),
            };
        }
        if reads_files(engine) {
            let data = || format!("data:application/pdf;base64,{}", BASE64_STANDARD.encode(&bytes));
            let file = || json!({ "type": "file", "file": { "filename": name, "file_data": data() } });
            return Ok(is_fetched.then(|| ContentPart::Other(file())));
        }
        let reader = self.reader.clone();
        match tokio::task::spawn_blocking(move || reader.pdf_text(&bytes)).await {
            Ok(Ok(text)) if text.trim().is_empty() => {
                Err("the PDF has no text; send its pages as images".to_owned())
            }
            Ok(Ok(text)) => Ok(Some(ContentPart::Text(file_text(name, &text)))),
            Ok(Err(error)) => Err(format!("the PDF cannot be read: {error}")),
            Err(_) => Err("the PDF cannot be read".to_owned()),
        }
    }
}

/// The content of a file: a `data:` URL, or base64 alone.
fn bytes_of(data: &str) -> Option<Vec<u8>> {
    let encoded = match data.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?.1,
        None => data,
    };
    BASE64_STANDARD.decode(encoded.trim_ascii()).ok()
}

/// The files, each with its place in the request.
fn files(request: &mut GenerateRequest) -> Vec<(String, &mut ContentPart)> {
    let mut files = Vec::new();
    for (index, message) in request.messages.iter_mut().enumerate() {
        let Content::Parts(parts) = &mut message.content else { continue };
        for (position, part) in parts.iter_mut().enumerate() {
            if matches!(part, ContentPart::Other(other) if other["type"] == "file") {
                files.push((format!("messages[{index}].content[{position}].file"), part));
            }
        }
    }
    files
}

#[cfg(test)]
#[path = "attached_files_tests.rs"]
mod tests;
