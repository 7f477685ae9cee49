//! Reads a regular file completely, once, and without blocking.

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::kind::Kind;
use super::{
    Document, ReadError, ReadLimits, child_process, code, decode, docx, html, json, mail, mailbox, markdown,
    ocr, odf, plain, pptx, table, xlsx,
};
use crate::types::PositionUnit;

/// The bytes of a file. Parsing is expensive: compare [`SourceFile::digest`] first.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    bytes: Vec<u8>,
    modified: Option<SystemTime>,
}

impl SourceFile {
    /// Reads a file. Links are not followed; the caller may resolve them.
    pub fn open(path: &Path, limits: &ReadLimits) -> Result<Self, ReadError> {
        if limits.is_secret(path) {
            return Err(ReadError::Secret);
        }
        let file = open(path)?;
        let before = file.metadata()?;
        if !before.is_file() {
            return Err(ReadError::NotAFile { what: kind(&before) });
        }
        let limit = limits.file_bytes;
        if before.len() > limit {
            return Err(ReadError::TooLarge { bytes: before.len(), limit });
        }
        let bytes = steady(&file, &before, &file)?;
        Ok(SourceFile { path: path.to_owned(), bytes, modified: before.modified().ok() })
    }

    /// A file that a caller sent. Its name decides how it is read, and names no file of this machine.
    pub fn received(name: &str, bytes: Vec<u8>) -> Self {
        SourceFile { path: PathBuf::from(name), bytes, modified: None }
    }

    /// The SHA-256 of the bytes.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }

    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    pub fn document(&self, limits: &ReadLimits) -> Result<Document, ReadError> {
        match Kind::of(&self.path, &self.bytes) {
            Kind::Pdf => {
                let document = child_process::read_pdf(&self.bytes, limits)?;
                ocr::read_scanned(document, &self.bytes, limits)
            }
            Kind::Picture => ocr::read_picture(&self.bytes, limits),
            Kind::Docx => docx::read(&self.bytes, limits),
            Kind::Xlsx => xlsx::read(&self.bytes, limits),
            Kind::Pptx => pptx::read(&self.bytes, limits),
            Kind::Odt => odf::read(&self.bytes, PositionUnit::Paragraph, limits),
            Kind::Ods => odf::read(&self.bytes, PositionUnit::Row, limits),
            Kind::Mail => mail::read(&self.bytes, limits),
            Kind::Mailbox => mailbox::read(&self.bytes, limits),
            kind => {
                let text = decode::decode(&self.bytes, kind)?;
                match kind {
                    Kind::Markdown => markdown::read(&text, limits),
                    Kind::Html => html::read(&text, limits),
                    Kind::Code => code::read(&text, limits),
                    Kind::Table(separator) => table::read(&text, separator, limits),
                    Kind::Json => json::read(&text, limits),
                    _ => plain::read(&text, limits),
                }
            }
        }
    }
}

/// The bytes of a file, if it does not change meanwhile.
fn steady(file: &File, before: &Metadata, reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
    // One more byte, so that a growing file is detected.
    reader.take(before.len().saturating_add(1)).read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    let is_same = after.len() == before.len()
        && bytes.len() as u64 == before.len()
        && after.modified().ok() == before.modified().ok();
    is_same.then_some(bytes).ok_or(ReadError::Changed)
}

/// Opens without blocking on a FIFO, and without following a link.
#[cfg(unix)]
fn open(path: &Path) -> Result<File, ReadError> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::RDONLY;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        // A link, or a loop of links.
        Err(Errno::LOOP) => Err(ReadError::NotAFile { what: "a symbolic link" }),
        Err(Errno::NXIO) => Err(ReadError::NotAFile { what: "a socket" }),
        Err(error) => Err(ReadError::Io(error.into())),
    }
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<File, ReadError> {
    Ok(File::open(path)?)
}

#[cfg(unix)]
fn kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;

    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn kind(_: &Metadata) -> &'static str {
    "a directory"
}

#[cfg(test)]
mod tests {
    use std::io::{self, Seek, Write};

    use super::*;

    /// A writer that changes the file while it is read.
    struct Meddler<'a> {
        file: &'a File,
        write: Option<fn(&File)>,
    }

    impl Read for Meddler<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if let Some(write) = self.write.take() {
                write(self.file);
            }
            self.file.read(buffer)
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let nothing: fn(&File) = |_| ();
        let grows: fn(&File) = |mut file| {
            let place = file.stream_position().unwrap();
            file.seek(io::SeekFrom::End(0)).unwrap();
            file.write_all(b"more").unwrap();
            file.seek(io::SeekFrom::Start(place)).unwrap();
        };
        let shrinks: fn(&File) = |file| file.set_len(3).unwrap();
        let is_written: fn(&File) = |file| file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        for (write, is_believed) in [(nothing, true), (grows, false), (shrinks, false), (is_written, false)] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"some text").unwrap();
            file.rewind().unwrap();
            let before = file.metadata().unwrap();
            let found = steady(&file, &before, Meddler { file: &file, write: Some(write) });
            match found {
                Ok(bytes) => assert!(is_believed && bytes == b"some text"),
                Err(error) => assert!(!is_believed && matches!(error, ReadError::Changed)),
            }
        }
    }
}
