//! Tables as text: each record on a line, its values with the names of their columns.

use super::draft::Draft;
use super::{Document, ReadError, ReadLimits, plain};
use crate::types::PositionUnit;

pub fn read(text: &str, separator: u8, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut table = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .has_headers(false)
        .from_reader(text.as_bytes());
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let mut names: Vec<String> = Vec::new();
    let mut record = csv::StringRecord::new();
    let mut line = String::new();
    // Records may have any number of fields, so every text can be read.
    while let Ok(more) = table.read_record(&mut record) {
        if !more {
            return Ok(draft.finish());
        }
        let place =
            record.position().map_or(1, |position| u32::try_from(position.line()).unwrap_or(u32::MAX));
        line.clear();
        for (index, value) in record.iter().enumerate() {
            let value = folded(value);
            if value.is_empty() {
                continue;
            }
            if !line.is_empty() {
                line.push_str(if names.is_empty() { " | " } else { "; " });
            }
            if let Some(name) = names.get(index).filter(|name| !name.is_empty()) {
                line.push_str(name);
                line.push_str(": ");
            }
            line.push_str(&value);
        }
        if names.is_empty() {
            names = record.iter().map(folded).collect();
        }
        if !line.is_empty() {
            draft.row(&line, place)?;
        }
    }
    plain::read(text, limits)
}

/// A value on one line.
fn folded(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}
