//! DOCX: paragraphs, headings, and rows of tables.

use std::io::BufRead;

use quick_xml::events::{BytesStart, Event};

use super::draft::Draft;
use super::office_archive::{OfficeArchive, broken, entity, events};
use super::table_rows::folded;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

/// Rows inside each other, and paragraphs inside each other.
const MAX_NESTED: usize = 256;

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = OfficeArchive::open(bytes, "DOCX", limits)?;
    let mut draft = Draft::new(PositionUnit::Paragraph, limits);
    draft.title(&archive.title("docProps/core.xml")?);
    let part = archive.required("word/document.xml")?;
    let mut body = Body { draft, number: 0, ignored: 0, tables: 0, paragraphs: Vec::new(), rows: Vec::new() };
    body.read(part)?;
    Ok(body.draft.finish())
}

/// The text of a paragraph so far.
struct OpenParagraph {
    kind: BlockKind,
    text: String,
}

/// The row of a table that is being read. A table can be in a cell of another one.
#[derive(Default)]
struct OpenRow {
    /// The cells that have ended.
    cells: String,
    cell: String,
}

struct Body {
    draft: Draft,
    /// The number of the last paragraph.
    number: u32,
    /// The depth in elements that repeat others.
    ignored: usize,
    tables: usize,
    /// The open paragraphs. A text box is in the paragraph that it belongs to.
    paragraphs: Vec<OpenParagraph>,
    rows: Vec<OpenRow>,
}

impl Body {
    fn read(&mut self, part: impl BufRead) -> Result<(), ReadError> {
        let mut is_text = false;
        events(part, |event| {
            match event {
                // The text of a drawing again, for old programs.
                Event::Start(tag) if self.ignored > 0 || tag.local_name().as_ref() == "Fallback" => {
                    self.ignored += 1;
                }
                Event::End(_) if self.ignored > 0 => self.ignored -= 1,
                _ if self.ignored > 0 => {}
                Event::Start(tag) => match tag.local_name().as_ref() {
                    "t" => is_text = true,
                    "tbl" => self.tables += 1,
                    "tr" if self.tables > 0 => self.begin_row()?,
                    "p" => self.begin_paragraph()?,
                    name => self.mark(name, &tag),
                },
                Event::Empty(tag) => self.mark(tag.local_name().as_ref(), &tag),
                Event::End(tag) => match tag.local_name().as_ref() {
                    "t" => is_text = false,
                    "tbl" => self.tables = self.tables.saturating_sub(1),
                    "p" => self.end_paragraph()?,
                    "tc" => self.end_cell(),
                    "tr" => self.end_row()?,
                    _ => {}
                },
                Event::Text(text) if is_text => self.add(&text),
                Event::GeneralRef(reference) if is_text => {
                    if let Some(character) = entity(&reference) {
                        self.add(character.encode_utf8(&mut [0; 4]));
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        // What the file does not end.
        while !self.paragraphs.is_empty() {
            self.end_paragraph()?;
        }
        while !self.rows.is_empty() {
            self.end_row()?;
        }
        Ok(())
    }

    fn add(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn begin_paragraph(&mut self) -> Result<(), ReadError> {
        if self.paragraphs.len() >= MAX_NESTED {
            return Err(broken("its paragraphs are nested too deep"));
        }
        self.number = self.number.saturating_add(1);
        self.paragraphs.push(OpenParagraph { kind: BlockKind::Paragraph, text: String::new() });
        Ok(())
    }

    fn begin_row(&mut self) -> Result<(), ReadError> {
        if self.rows.len() >= MAX_NESTED {
            return Err(broken("its tables are nested too deep"));
        }
        self.rows.push(OpenRow::default());
        Ok(())
    }

    /// Elements without text.
    fn mark(&mut self, name: &str, tag: &BytesStart) {
        match name {
            "tab" => self.add("\t"),
            "br" | "cr" => self.add("\n"),
            "noBreakHyphen" => self.add("-"),
            "pStyle" => {
                let style =
                    tag.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == "val");
                let level = style
                    .and_then(|style| if &*style.value == "Title" { Some(1) } else { heading(&style.value) });
                if let (Some(level), Some(paragraph)) = (level, self.paragraphs.last_mut()) {
                    paragraph.kind = BlockKind::Heading(level);
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) -> Result<(), ReadError> {
        let Some(OpenParagraph { kind, text }) = self.paragraphs.pop() else { return Ok(()) };
        let Some(OpenRow { cell, .. }) = self.rows.last_mut() else {
            return self.draft.push(kind, text.trim(), (self.number, self.number));
        };
        joined(cell, " ", &folded(&text));
        Ok(())
    }

    fn end_cell(&mut self) {
        if let Some(OpenRow { cells, cell }) = self.rows.last_mut() {
            joined(cells, " | ", &std::mem::take(cell));
        }
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        self.end_cell();
        match self.rows.pop().filter(|row| !row.cells.is_empty()) {
            Some(row) => self.draft.row(&row.cells, self.number),
            None => Ok(()),
        }
    }
}

/// Adds words to a text, after a separator unless it is the first.
fn joined(text: &mut String, separator: &str, words: &str) {
    if !text.is_empty() && !words.is_empty() {
        text.push_str(separator);
    }
    text.push_str(words);
}

/// The level of a heading style such as `Heading1`.
fn heading(style: &str) -> Option<u8> {
    match style.to_ascii_lowercase().strip_prefix("heading")?.as_bytes() {
        [level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}
