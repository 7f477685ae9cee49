//! XLSX: the rows of every sheet, with the stored results of formulas.

use std::io::BufRead;

use quick_xml::events::{BytesStart, Event};

use super::draft::Draft;
use super::number_format::{DateSystem, NumberFormats};
use super::office_archive::{OfficeArchive, attribute, broken, by_id, entity, events, relation_id};
use super::table_rows::{ColumnNames, MAX_COLUMNS, MAX_ROW_BYTES, TableCell, TableRows, folded, too_long};
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

const WORKBOOK: &str = "xl/workbook.xml";

/// Sheets that are read.
const MAX_SHEETS: usize = 1_000;

/// Texts that cells may refer to. A few bytes of a file make one.
const MAX_STRINGS: usize = 2 << 20;

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = OfficeArchive::open(bytes, "XLSX", limits)?;
    let mut draft = Draft::new(PositionUnit::Row, limits);
    draft.title(&archive.title("docProps/core.xml")?);
    let workbook = Workbook::read(archive.required(WORKBOOK)?)?;
    let relations = archive.relations(WORKBOOK)?;
    let shared = match archive.part("xl/sharedStrings.xml")? {
        Some(part) => shared_strings(part)?,
        None => Vec::new(),
    };
    let formats = match archive.part("xl/styles.xml")? {
        Some(part) => NumberFormats::read(part)?,
        None => NumberFormats::default(),
    };
    let values = CellValues { shared, formats, dates: workbook.dates };
    let relations = by_id(&relations);
    for (name, id) in workbook.sheets.iter().take(MAX_SHEETS) {
        let Some(relation) = relations.get(id.as_str()) else { continue };
        // Charts have sheets of another kind.
        if !relation.kind.ends_with("/worksheet") {
            continue;
        }
        if let Some(part) = archive.part(&relation.target)? {
            draft.push(BlockKind::Heading(1), name, (1, 1))?;
            sheet(part, &values, &mut draft)?;
        }
    }
    Ok(draft.finish())
}

#[derive(Default)]
struct Workbook {
    /// The names of the sheets with their relations, in order.
    sheets: Vec<(String, String)>,
    dates: DateSystem,
}

impl Workbook {
    fn read(part: impl BufRead) -> Result<Self, ReadError> {
        let mut workbook = Workbook::default();
        events(part, |event| {
            let (Event::Start(tag) | Event::Empty(tag)) = event else { return Ok(()) };
            match tag.local_name().as_ref() {
                "workbookPr" if attribute(&tag, "date1904").is_some_and(|value| is_true(&value)) => {
                    workbook.dates = DateSystem::From1904;
                }
                "sheet" => {
                    if let (Some(name), Some(id)) = (attribute(&tag, "name"), relation_id(&tag)) {
                        workbook.sheets.push((name, id));
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(workbook)
    }
}

fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true")
}

/// Texts that cells refer to by their number, each on one line. Any number of cells can refer to one, so blanks are removed here.
fn shared_strings(part: impl BufRead) -> Result<Vec<String>, ReadError> {
    let mut strings = Vec::new();
    let (mut is_text, mut is_phonetic) = (false, false);
    events(part, |event| {
        match event {
            Event::Start(tag) => match tag.local_name().as_ref() {
                "si" => strings.push(String::new()),
                "rPh" => is_phonetic = true,
                "t" => is_text = !is_phonetic,
                _ => {}
            },
            Event::Empty(tag) if tag.local_name().as_ref() == "si" => strings.push(String::new()),
            Event::End(tag) => match tag.local_name().as_ref() {
                "rPh" => is_phonetic = false,
                "t" => is_text = false,
                _ => {}
            },
            Event::Text(text) if is_text => push(&mut strings, &text),
            Event::GeneralRef(reference) if is_text => {
                if let Some(character) = entity(&reference) {
                    push(&mut strings, character.encode_utf8(&mut [0; 4]));
                }
            }
            _ => {}
        }
        if strings.len() > MAX_STRINGS {
            return Err(broken("it has too many texts"));
        }
        Ok(())
    })?;
    Ok(strings.into_iter().map(|text| folded(&text)).collect())
}

fn push(strings: &mut [String], text: &str) {
    if let Some(last) = strings.last_mut() {
        last.push_str(text);
    }
}

/// What is needed to read the value of a cell.
struct CellValues {
    shared: Vec<String>,
    formats: NumberFormats,
    dates: DateSystem,
}

/// A cell as it is written.
#[derive(Default)]
struct RawCell {
    column: usize,
    /// The attribute `t`.
    kind: String,
    style: usize,
    value: String,
}

impl CellValues {
    fn cell(&self, cell: &RawCell) -> Option<TableCell> {
        let RawCell { column, kind, style, value } = cell;
        let value = value.trim();
        if value.is_empty() || *column >= MAX_COLUMNS {
            return None;
        }
        let other = |text: String| TableCell { column: *column, text, is_word: false };
        Some(match kind.as_str() {
            "s" => {
                let text = self.shared.get(value.parse::<usize>().ok()?)?.clone();
                TableCell { column: *column, text, is_word: true }
            }
            "str" | "inlineStr" => TableCell::word(*column, value),
            "b" => other(if is_true(value) { "yes" } else { "no" }.to_owned()),
            // An error such as #DIV/0! says nothing.
            "e" => return None,
            "d" => other(value.to_owned()),
            _ => other(self.formats.shown(*style, value, self.dates)),
        })
    }
}

/// What the text of the current element is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SheetText {
    Ignored,
    Value,
}

fn sheet(part: impl BufRead, values: &CellValues, draft: &mut Draft) -> Result<(), ReadError> {
    let mut rows = TableRows::new(ColumnNames::WordsOnly);
    let mut cells: Vec<TableCell> = Vec::new();
    // Many cells can refer to one long text, and each has a copy of it.
    let mut row_bytes = 0_usize;
    let mut cell = RawCell::default();
    let mut number = 0_u32;
    let mut text = SheetText::Ignored;
    let mut is_phonetic = false;
    events(part, |event| {
        match event {
            Event::Start(tag) => match tag.local_name().as_ref() {
                "row" => {
                    // One without an end counts, too.
                    end_row(&mut rows, &mut cells, number, draft)?;
                    number = row_number(&tag, number);
                    row_bytes = 0;
                    cell = RawCell::default();
                }
                "c" => cell = begun(&tag, &cell),
                "rPh" => is_phonetic = true,
                "v" => text = SheetText::Value,
                // Of an inline text.
                "t" if !is_phonetic => text = SheetText::Value,
                _ => {}
            },
            // A cell without a value still has a place.
            Event::Empty(tag) => match tag.local_name().as_ref() {
                "c" => {
                    let column = begun(&tag, &cell).column.saturating_add(1);
                    cell = RawCell { column, ..RawCell::default() };
                }
                "row" => number = row_number(&tag, number),
                _ => {}
            },
            Event::End(tag) => match tag.local_name().as_ref() {
                "v" | "t" => text = SheetText::Ignored,
                "rPh" => is_phonetic = false,
                "c" => {
                    if cells.len() < MAX_COLUMNS
                        && let Some(read) = values.cell(&cell)
                    {
                        row_bytes += read.text.len();
                        if row_bytes > MAX_ROW_BYTES {
                            return Err(too_long());
                        }
                        cells.push(read);
                    }
                    // The next cell may have no reference.
                    cell = RawCell { column: cell.column.saturating_add(1), ..RawCell::default() };
                }
                "row" => end_row(&mut rows, &mut cells, number, draft)?,
                _ => {}
            },
            Event::Text(piece) if text == SheetText::Value => cell.value.push_str(&piece),
            Event::GeneralRef(reference) if text == SheetText::Value => {
                cell.value.extend(entity(&reference));
            }
            _ => {}
        }
        Ok(())
    })
}

/// Adds a row, and empties its cells.
fn end_row(
    rows: &mut TableRows,
    cells: &mut Vec<TableCell>,
    number: u32,
    draft: &mut Draft,
) -> Result<(), ReadError> {
    let line = rows.line(cells)?;
    cells.clear();
    match line.is_empty() {
        true => Ok(()),
        false => draft.row(&line, number.max(1)),
    }
}

/// The number of a row; the next one if it has none.
fn row_number(tag: &BytesStart, last: u32) -> u32 {
    let told = attribute(tag, "r").and_then(|number| number.parse().ok());
    told.filter(|number| *number > last).unwrap_or_else(|| last.saturating_add(1))
}

/// A new cell. `next` has the place of a cell without a reference.
fn begun(tag: &BytesStart, next: &RawCell) -> RawCell {
    RawCell {
        column: attribute(tag, "r").and_then(|place| column(&place)).unwrap_or(next.column),
        kind: attribute(tag, "t").unwrap_or_default(),
        style: attribute(tag, "s").and_then(|style| style.parse().ok()).unwrap_or_default(),
        value: String::new(),
    }
}

/// The column of a reference such as `AB12`, from 0.
fn column(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_uppercase);
    let number = letters
        .fold(0_usize, |sum, letter| sum.saturating_mul(26).saturating_add(usize::from(letter - b'A') + 1));
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_letters() {
        assert_eq!(
            ["A1", "Z9", "AA3", "XFD1", "7"].map(column),
            [Some(0), Some(25), Some(26), Some(16_383), None]
        );
        assert!(column(&"Z".repeat(99)).is_some_and(|column| column > MAX_COLUMNS), "it does not overflow");
    }
}
