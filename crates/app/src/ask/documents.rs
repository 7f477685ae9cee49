//! Files in the messages of a request. Hob fetches those that are named by address, by the same guarded way as pictures, and gives
//! their text to engines that read no files. The text is marked as that of a file, because its author need not be the caller.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_agents::builtin::WebFetchOptions;
use hob_agents::builtin::web_fetch::{FetchedPage, Fetcher, Redirects};
use hob_core::message::file_text;
use hob_core::{AskError, Content, ContentPart, GenerateRequest};
use hob_engines::hints::reads_files;
use hob_memory::read::SourceFile;
use hob_memory::read::child_process::read_pdf;
use hob_memory::{ReadError, ReadLimits, ReaderProcess};
use serde_json::{Value, json};

/// Files of one request.
const MAX_FILES: usize = 16;

/// Bytes of a file.
const MAX_FILE_BYTES: usize = 32 << 20;

/// Text of a file: more than any model reads.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// Text of a file that a page attaches to a question.
const MAX_READ_BYTES: usize = 1 << 20;

const MAX_PAGES: usize = 1_000;

/// The time for a file, redirects included.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    pub text: String,
    /// Whether the file has more.
    pub is_cut: bool,
}

/// Fetches and reads files. Whether a caller may name addresses is decided before.
pub struct DocumentReader {
    fetcher: Fetcher,
    limits: ReadLimits,
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
        let options =
            WebFetchOptions { timeout: TIMEOUT, max_bytes: MAX_FILE_BYTES, accept: "*/*", ..options };
        DocumentReader {
            fetcher: Fetcher::new(options),
            limits: ReadLimits {
                file_bytes: MAX_FILE_BYTES as u64,
                text_bytes: MAX_TEXT_BYTES,
                pages: MAX_PAGES,
                reader_process: reader,
                ..ReadLimits::default()
            },
        }
    }

    /// The text of a file that a caller sent. Blocks.
    pub fn read(&self, name: &str, bytes: Vec<u8>) -> Result<FileText, ReadError> {
        read_file(&self.limits, name, bytes)
    }

    /// The same, for a message on a channel.
    pub(super) async fn text_of(&self, name: &str, bytes: Vec<u8>) -> Result<String, AskError> {
        let refused = |reason: String| AskError::Attachment { param: name.to_owned(), reason };
        let (limits, owned_name) = (self.limits.clone(), name.to_owned());
        match tokio::task::spawn_blocking(move || read_file(&limits, &owned_name, bytes)).await {
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
            (None, Some(address)) => (self.fetch(address).await?, true),
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
        let limits = self.limits.clone();
        let read = tokio::task::spawn_blocking(move || read_pdf(&bytes, &limits)).await;
        let document = match read {
            Ok(document) => document.map_err(|error| format!("the PDF cannot be read: {error}"))?,
            Err(_) => return Err("the PDF cannot be read".to_owned()),
        };
        let text: Vec<&str> = document.blocks.iter().map(|block| block.text.as_str()).collect();
        if text.iter().all(|text| text.trim().is_empty()) {
            return Err("the PDF has no text; send its pages as images".to_owned());
        }
        Ok(Some(ContentPart::Text(file_text(name, &text.join("\n")))))
    }

    async fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        let page = self.fetcher.fetch(address, Redirects::Anywhere).await;
        let page = page.map_err(|error| format!("the file cannot be fetched: {error}"))?;
        let FetchedPage { body, is_cut, .. } = page;
        match is_cut {
            true => Err(format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20)),
            false => Ok(body),
        }
    }
}

fn read_file(limits: &ReadLimits, name: &str, bytes: Vec<u8>) -> Result<FileText, ReadError> {
    let (size, limit) = (bytes.len() as u64, limits.file_bytes);
    if size > limit {
        return Err(ReadError::TooLarge { bytes: size, limit });
    }
    let document = SourceFile::received(name, bytes).document(limits)?;
    let blocks: Vec<&str> = document.blocks.iter().map(|block| block.text.as_str()).collect();
    let mut text = blocks.join("\n");
    let is_cut = text.len() > MAX_READ_BYTES;
    if is_cut {
        text.truncate(text.floor_char_boundary(MAX_READ_BYTES));
    }
    Ok(FileText { text, is_cut })
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
#[path = "documents_tests.rs"]
mod tests;
