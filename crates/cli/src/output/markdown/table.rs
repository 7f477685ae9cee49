//! Tables. They are shown when they are complete, because every row has a say in the width of the columns.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid};
use pulldown_cmark::Alignment;

/// A table as it is read.
#[derive(Debug, Default)]
pub struct Table {
    alignments: Vec<Alignment>,
    /// The first one is the header.
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Table { alignments, rows: Vec::new() }
    }

    pub fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    /// Adds to the last cell.
    pub fn text(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push_str(text);
        }
    }

    /// The lines of the table, at most so many columns wide where that is possible.
    pub fn render(&self, width: usize) -> String {
        let mut grid = Grid::new();
        grid.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        let mut rows = self.rows.iter();
        if let Some(header) = rows.next() {
            grid.set_header(header);
        }
        for row in rows {
            grid.add_row(row);
        }
        for (alignment, column) in self.alignments.iter().zip(grid.column_iter_mut()) {
            let alignment = match alignment {
                Alignment::None | Alignment::Left => CellAlignment::Left,
                Alignment::Center => CellAlignment::Center,
                Alignment::Right => CellAlignment::Right,
            };
            column.set_cell_alignment(alignment);
        }
        grid.to_string()
    }
}
