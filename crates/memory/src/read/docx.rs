//! DOCX: paragraphs, headings, and rows of tables.

use std::io::BufRead;

use quick_xml::events::{BytesStart, Event};

use super::draft::Draft;
use super::office_archive::{OfficeArchive, entity, events};
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = OfficeArchive::open(bytes, "DOCX", limits)?;
    let mut draft = Draft::new(PositionUnit::Paragraph, limits);
    draft.title(&archive.title("docProps/core.xml")?);
    let part = archive.required("word/document.xml")?;
    Body { draft, paragraph: String::new(), kind: BlockKind::Paragraph, number: 0, row: None }.read(part)
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
