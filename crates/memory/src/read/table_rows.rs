//! Rows of tables as text: each value with the name of its column, where the columns have names.

use std::collections::HashMap;

use super::ReadError;

/// Columns beyond this one are dropped, as in spreadsheet programs.
pub const MAX_COLUMNS: usize = 16_384;

/// The longest text of a row. A few bytes of a file can mean many long cells.
pub const MAX_ROW_BYTES: usize = 4 << 20;

/// The longest name of a column of a spreadsheet, in bytes. Longer texts in a first row are values.
const MAX_NAME_BYTES: usize = 120;

/// A value, and its column from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCell {
    pub column: usize,
    pub text: String,
    /// Whether it is a word rather than a number, a date or the like.
    pub is_word: bool,
}

impl TableCell {
    /// A cell with words on one line.
    pub fn word(column: usize, text: &str) -> Self {
        TableCell { column, text: folded(text), is_word: true }
    }
}

/// Which row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnNames {
    /// The first one.
    FirstRow,
    /// The first one that has several cells, if all of them are short words.
    WordsOnly,
}

/// The rows of one table.
pub struct TableRows {
    names: HashMap<usize, String>,
    /// `None` once the names are known, or it is clear that there are none.
    wanted: Option<ColumnNames>,
}

impl TableRows {
    pub fn new(names: ColumnNames) -> Self {
        TableRows { names: HashMap::new(), wanted: Some(names) }
    }

    /// A row on one line; empty if it has no values.
    pub fn line(&mut self, cells: &[TableCell]) -> Result<String, ReadError> {
        let mut line = String::new();
        for TableCell { column, text, .. } in cells.iter().filter(|cell| !cell.text.is_empty()) {
            if !line.is_empty() {
                line.push_str(if self.names.is_empty() { " | " } else { "; " });
            }
            if let Some(name) = self.names.get(column) {
                line.push_str(name);
                line.push_str(": ");
            }
            line.push_str(text);
            if line.len() > MAX_ROW_BYTES {
                return Err(too_long());
            }
        }
        self.take_names(cells);
        Ok(line)
    }

    fn take_names(&mut self, cells: &[TableCell]) {
        let Some(wanted) = self.wanted else { return };
        let filled = || cells.iter().filter(|cell| !cell.text.is_empty());
        let are_names = match wanted {
            ColumnNames::FirstRow => true,
            // A title above the table has a row of its own.
            ColumnNames::WordsOnly if filled().count() < 2 => return,
            ColumnNames::WordsOnly => filled().all(|cell| cell.is_word && cell.text.len() <= MAX_NAME_BYTES),
        };
        self.wanted = None;
        if are_names {
            self.names = filled().map(|cell| (cell.column, cell.text.clone())).collect();
        }
    }
}

pub fn too_long() -> ReadError {
    ReadError::Broken { reason: "a row of a table is too long".to_owned() }
}

/// A value on one line.
pub fn folded(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str]) -> Vec<TableCell> {
        let cell = |(column, text): (usize, &&str)| TableCell {
            is_word: text.parse::<f64>().is_err(),
            ..TableCell::word(column, text)
        };
        texts.iter().enumerate().map(cell).collect()
    }

    #[test]
    fn a_title_above_a_table_does_not_name_its_columns() {
        let mut rows = TableRows::new(ColumnNames::WordsOnly);
        let lines = [&["Costs of 2026"][..], &["what", "euro"], &["boiler", "310"], &["", "7", "x"]]
            .map(|texts| rows.line(&row(texts)).unwrap());
        assert_eq!(lines, ["Costs of 2026", "what | euro", "what: boiler; euro: 310", "euro: 7; x"]);
    }

    #[test]
    fn numbers_in_the_first_row_are_values() {
        let mut rows = TableRows::new(ColumnNames::WordsOnly);
        let lines = [["boiler", "310"], ["pump", "90"]].map(|texts| rows.line(&row(&texts)).unwrap());
        assert_eq!(lines, ["boiler | 310", "pump | 90"]);
    }

    #[test]
    fn a_row_of_many_long_cells_is_an_error() {
        let long = "x".repeat(1 << 20);
        let cells: Vec<TableCell> = (0..5).map(|column| TableCell::word(column, &long)).collect();
        assert!(TableRows::new(ColumnNames::FirstRow).line(&cells).is_err());
    }
}
