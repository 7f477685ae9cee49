//! OpenDocument (ODT, ODS, ODP): headings, paragraphs, and rows of tables.

use std::io::BufRead;

use quick_xml::events::{BytesStart, Event};

use super::draft::Draft;
use super::office_archive::{OfficeArchive, attribute, broken, entity, events};
use super::table_rows::{ColumnNames, MAX_COLUMNS, TableCell, TableRows};
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

/// A cell that is repeated more often is written this many times.
const MAX_REPEATED: usize = 64;

/// A longer cell is written once, whatever the file says.
const MAX_REPEATED_BYTES: usize = 256;

/// Spaces that one tag stands for.
const MAX_SPACES: usize = 64;

/// Tables inside each other, and paragraphs inside each other.
const MAX_NESTED: usize = 256;

/// Elements whose text is not part of the document. The number of a note would become part of the word before it.
const IGNORED: [&str; 5] = ["tracked-changes", "annotation", "forms", "styles", "note-citation"];

/// Reads a file in which `unit` counts: rows for a spreadsheet, paragraphs for others.
pub fn read(bytes: &[u8], unit: PositionUnit, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = OfficeArchive::open(bytes, "OpenDocument", limits)?;
    if archive.part("META-INF/manifest.xml")?.map(is_encrypted).transpose()?.unwrap_or(false) {
        return Err(ReadError::Broken { reason: "it is encrypted, and no password is known".to_owned() });
    }
    let mut draft = Draft::new(unit, limits);
    draft.title(&archive.title("meta.xml")?);
    let part = archive.required("content.xml")?;
    let mut content =
        Content { draft, unit, number: 0, paragraphs: Vec::new(), ignored: 0, tables: Vec::new() };
    events(part, |event| content.take(event))?;
    Ok(content.draft.finish())
}

fn is_encrypted(part: impl BufRead) -> Result<bool, ReadError> {
    let mut found = false;
    events(part, |event| {
        if let Event::Start(tag) | Event::Empty(tag) = event {
            found |= tag.local_name().as_ref() == "encryption-data";
        }
        Ok(())
    })?;
    Ok(found)
}

/// The text of a paragraph so far.
struct OpenParagraph {
    kind: BlockKind,
    text: String,
}

/// The table that is being read. A table can be in a cell of another one.
struct OpenTable {
    rows: TableRows,
    /// The number of the current row, from 1.
    number: u32,
    /// How often the current row is repeated.
    repeated: u32,
    cells: Vec<TableCell>,
    /// The column of the next cell.
    column: usize,
    cell: Option<OpenCell>,
}

struct OpenCell {
    repeated: usize,
    is_word: bool,
    text: String,
}

struct Content {
    draft: Draft,
    unit: PositionUnit,
    /// The number of the current paragraph.
    number: u32,
    /// The open paragraphs. A footnote or a text box is in the paragraph that refers to it.
    paragraphs: Vec<OpenParagraph>,
    /// The depth in ignored elements.
    ignored: usize,
    tables: Vec<OpenTable>,
}

impl Content {
    fn take(&mut self, event: Event) -> Result<(), ReadError> {
        match event {
            Event::Start(tag) => {
                if self.ignored > 0 || IGNORED.contains(&tag.local_name().as_ref()) {
                    self.ignored += 1;
                    return Ok(());
                }
                self.begin(&tag)
            }
            Event::Empty(_) if self.ignored > 0 => Ok(()),
            Event::Empty(tag) => {
                self.begin(&tag)?;
                self.end(tag.local_name().as_ref())
            }
            Event::End(_) if self.ignored > 0 => {
                self.ignored -= 1;
                Ok(())
            }
            Event::End(tag) => self.end(tag.local_name().as_ref()),
            Event::Text(text) if self.ignored == 0 => {
                self.add(&text);
                Ok(())
            }
            Event::GeneralRef(reference) if self.ignored == 0 => {
                if let Some(character) = entity(&reference) {
                    self.add(character.encode_utf8(&mut [0; 4]));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn begin(&mut self, tag: &BytesStart) -> Result<(), ReadError> {
        match tag.local_name().as_ref() {
            "p" => self.open_paragraph(BlockKind::Paragraph)?,
            "h" => {
                let level = attribute(tag, "outline-level").and_then(|level| level.parse().ok());
                self.open_paragraph(BlockKind::Heading(level.unwrap_or(1_u8).clamp(1, 6)))?;
            }
            "s" => {
                let count = attribute(tag, "c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                self.add(&" ".repeat(count.min(MAX_SPACES)));
            }
            "tab" => self.add("\t"),
            "line-break" => self.add("\n"),
            "table" => self.open_table(tag)?,
            "table-row" => {
                if let Some(table) = self.tables.last_mut() {
                    table.repeated = repeated(tag, "number-rows-repeated");
                    table.column = 0;
                    table.cells.clear();
                }
            }
            "table-cell" | "covered-table-cell" => {
                if let Some(table) = self.tables.last_mut() {
                    let kind = attribute(tag, "value-type");
                    table.cell = Some(OpenCell {
                        repeated: repeated(tag, "number-columns-repeated") as usize,
                        is_word: kind.is_none_or(|kind| kind == "string"),
                        text: String::new(),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open_paragraph(&mut self, kind: BlockKind) -> Result<(), ReadError> {
        if self.paragraphs.len() >= MAX_NESTED {
            return Err(broken("its paragraphs are nested too deep"));
        }
        self.number = self.number.saturating_add(1);
        self.paragraphs.push(OpenParagraph { kind, text: String::new() });
        Ok(())
    }

    fn open_table(&mut self, tag: &BytesStart) -> Result<(), ReadError> {
        if self.tables.len() >= MAX_NESTED {
            return Err(broken("its tables are nested too deep"));
        }
        if self.unit == PositionUnit::Row
            && self.tables.is_empty()
            && let Some(name) = attribute(tag, "name")
        {
            self.draft.push(BlockKind::Heading(1), &name, (1, 1))?;
        }
        self.tables.push(OpenTable {
            rows: TableRows::new(ColumnNames::WordsOnly),
            number: 1,
            repeated: 1,
            cells: Vec::new(),
            column: 0,
            cell: None,
        });
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), ReadError> {
        match name {
            "p" | "h" => self.end_paragraph(),
            "table-cell" | "covered-table-cell" => {
                if let Some(table) = self.tables.last_mut() {
                    table.end_cell();
                }
                Ok(())
            }
            "table-row" => self.end_row(),
            "table" => {
                self.tables.pop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end_paragraph(&mut self) -> Result<(), ReadError> {
        let Some(OpenParagraph { kind, text }) = self.paragraphs.pop() else { return Ok(()) };
        if let Some(cell) = self.tables.last_mut().and_then(|table| table.cell.as_mut()) {
            if !cell.text.is_empty() {
                cell.text.push(' ');
            }
            cell.text.push_str(&text);
            return Ok(());
        }
        self.draft.push(kind, text.trim(), (self.number, self.number))
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        let Some(table) = self.tables.last_mut() else { return Ok(()) };
        let line = table.rows.line(&table.cells)?;
        table.cells.clear();
        let place = if self.unit == PositionUnit::Row { table.number } else { self.number.max(1) };
        // A row that is repeated says nothing new.
        table.number = table.number.saturating_add(table.repeated);
        match line.is_empty() {
            true => Ok(()),
            false => self.draft.row(&line, place),
        }
    }
}

impl OpenTable {
    fn end_cell(&mut self) {
        let Some(OpenCell { repeated, is_word, text }) = self.cell.take() else { return };
        let cell = TableCell { is_word, ..TableCell::word(self.column, &text) };
        let copies = match cell.text.len() {
            0 => 0,
            1..=MAX_REPEATED_BYTES => repeated.min(MAX_REPEATED),
            _ => 1,
        };
        for column in (self.column..MAX_COLUMNS).take(copies) {
            if self.cells.len() < MAX_COLUMNS {
                self.cells.push(TableCell { column, ..cell.clone() });
            }
        }
        self.column = self.column.saturating_add(repeated);
    }
}

/// How often a row or a cell is repeated, at least once.
fn repeated(tag: &BytesStart, name: &str) -> u32 {
    attribute(tag, name).and_then(|count| count.parse().ok()).unwrap_or(1_u32).max(1)
}
