//! CSV and TSV as text: each record on a line, its values with the names of their columns.

use super::draft::Draft;
use super::table_rows::{ColumnNames, MAX_COLUMNS, TableCell, TableRows};
use super::{Document, ReadError, ReadLimits, plain};
use crate::types::PositionUnit;

pub fn read(text: &str, separator: u8, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut table = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .has_headers(false)
        .from_reader(text.as_bytes());
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let mut rows = TableRows::new(ColumnNames::FirstRow);
    let mut record = csv::StringRecord::new();
    // Records may have any number of fields, so every text can be read.
    while let Ok(more) = table.read_record(&mut record) {
        if !more {
            return Ok(draft.finish());
        }
        let place =
            record.position().map_or(1, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
        // A megabyte of separators is a row of a million cells.
        let cells = record.iter().enumerate().take(MAX_COLUMNS);
        let cells: Vec<TableCell> = cells.map(|(column, value)| TableCell::word(column, value)).collect();
        let line = rows.line(&cells)?;
        if !line.is_empty() {
            draft.row(&line, place)?;
        }
    }
    plain::read(text, limits)
}
