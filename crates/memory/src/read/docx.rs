//! DOCX: a ZIP archive with XML. Both are read as streams with limits.

use std::io::{BufRead, BufReader, Cursor, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use zip::ZipArchive;
use zip::result::ZipError;

use super::draft::Draft;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

/// The highest compression. A letter has a ratio of ten, a long table of a hundred.
const MAX_RATIO: u64 = 400;

/// Below this size the ratio does not matter.
const FREE_BYTES: u64 = 4 << 20;

/// The longest piece of XML in memory: a tag, or a run of text.
const MAX_PIECE: usize = 8 << 20;

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken_archive)?;
    let mut draft = Draft::new(PositionUnit::Paragraph, limits);
    if let Some(part) = part(&mut archive, "docProps/core.xml", limits)? {
        draft.title(&title(part)?);
    }
    let Some(part) = part(&mut archive, "word/document.xml", limits)? else {
        return Err(broken("it has no word/document.xml"));
    };
    Body { draft, paragraph: String::new(), kind: BlockKind::Paragraph, number: 0, row: None }.read(part)
}

fn broken(reason: impl Into<String>) -> ReadError {
    ReadError::Broken { reason: reason.into() }
}

fn broken_archive(error: ZipError) -> ReadError {
    broken(format!("it is not a DOCX archive ({error})"))
}

/// A file in the archive, with a limit on its size.
fn part<'a>(
    archive: &'a mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
    limits: &ReadLimits,
) -> Result<Option<impl BufRead + 'a>, ReadError> {
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(broken_archive(error)),
    };
    // The size in the archive may be wrong, so the limit applies to what is read.
    let packed = file.compressed_size();
    let most = (limits.text_bytes as u64).min(packed.saturating_mul(MAX_RATIO).max(FREE_BYTES));
    Ok(Some(BufReader::new(Bounded { inner: file, left: most })))
}

/// Fails if there is more to read than allowed.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            std::io::Error::other("it unpacks to far more than a document contains (a ZIP bomb?)")
        })?;
        Ok(read)
    }
}

/// Calls `each` with every event. Entities are not resolved, so none can grow.
fn events(part: impl BufRead, mut each: impl FnMut(Event) -> Result<(), ReadError>) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(part);
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        let event = reader.read_event_into(&mut buffer).map_err(|error| broken(error.to_string()))?;
        if event.len() > MAX_PIECE {
            return Err(broken("a single piece of its XML is too large"));
        }
        match event {
            Event::Eof => return Ok(()),
            Event::DocType(_) => return Err(broken("its XML has a document type, which is not allowed")),
            event => each(event)?,
        }
        buffer.clear();
    }
}

fn entity(reference: &BytesRef) -> Option<char> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(character);
    }
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

fn title(part: impl BufRead) -> Result<String, ReadError> {
    let mut title = String::new();
    let mut is_inside = false;
    events(part, |event| {
        match event {
            Event::Start(tag) => is_inside = tag.local_name().as_ref() == "title",
            Event::End(_) => is_inside = false,
            Event::Text(text) if is_inside => title.push_str(&text),
            Event::GeneralRef(reference) if is_inside => title.extend(entity(&reference)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(title)
}

struct Body {
    draft: Draft,
    paragraph: String,
    kind: BlockKind,
    number: u32,
    /// The cells of the current row in a table.
    row: Option<String>,
}

impl Body {
    fn read(mut self, part: impl BufRead) -> Result<Document, ReadError> {
        let mut is_text = false;
        let mut tables = 0_usize;
        events(part, |event| {
            match event {
                Event::Start(tag) => match tag.local_name().as_ref() {
                    "t" => is_text = true,
                    "tbl" => tables += 1,
                    "tr" if tables > 0 => self.row = Some(String::new()),
                    "p" => self.begin(),
                    name => self.mark(name, &tag),
                },
                Event::Empty(tag) => self.mark(tag.local_name().as_ref(), &tag),
                Event::End(tag) => match tag.local_name().as_ref() {
                    "t" => is_text = false,
                    "tbl" => tables = tables.saturating_sub(1),
                    "p" => self.end_paragraph()?,
                    "tr" => self.end_row()?,
                    _ => {}
                },
                Event::Text(text) if is_text => self.paragraph.push_str(&text),
                Event::GeneralRef(reference) if is_text => self.paragraph.extend(entity(&reference)),
                _ => {}
            }
            Ok(())
        })?;
        self.end_paragraph()?;
        self.end_row()?;
        Ok(self.draft.finish())
    }

    fn begin(&mut self) {
        self.number = self.number.saturating_add(1);
        self.kind = BlockKind::Paragraph;
    }

    /// Elements without text.
    fn mark(&mut self, name: &str, tag: &BytesStart) {
        match name {
            "tab" => self.paragraph.push('\t'),
            "br" | "cr" => self.paragraph.push('\n'),
            "noBreakHyphen" => self.paragraph.push('-'),
            "pStyle" => {
                let style =
                    tag.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == "val");
                let level = style
                    .and_then(|style| if &*style.value == "Title" { Some(1) } else { heading(&style.value) });
                if let Some(level) = level {
                    self.kind = BlockKind::Heading(level);
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) -> Result<(), ReadError> {
        let text = std::mem::take(&mut self.paragraph);
        if let Some(row) = &mut self.row {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if !row.is_empty() && !words.is_empty() {
                row.push_str(" | ");
            }
            row.push_str(&words);
            return Ok(());
        }
        self.draft.push(self.kind, text.trim(), (self.number, self.number))
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        match self.row.take().filter(|row| !row.is_empty()) {
            Some(row) => self.draft.row(&row, self.number),
            None => Ok(()),
        }
    }
}

/// The level of a heading style such as `Heading1`.
fn heading(style: &str) -> Option<u8> {
    match style.to_ascii_lowercase().strip_prefix("heading")?.as_bytes() {
        [level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}
