//! Tables: columns under a header, and lists of facts.

use std::io::{self, IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table};

use crate::output::style::NAME;

/// Space between columns.
const GAP: u16 = 2;

/// A column's header, and where its cells stand.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    Words(&'static str),
    Numbers(&'static str),
}

/// A table is never squeezed into less.
const NARROWEST: u16 = 60;

/// Prints rows under their headers. On a terminal long cells are wrapped to its width; piped, a row is a line.
pub fn print(columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    let arrangement =
        if io::stdout().is_terminal() { ContentArrangement::Dynamic } else { ContentArrangement::Disabled };
    writeln!(anstream::stdout(), "{}", render(columns, rows, arrangement))
}

fn render(columns: &[Column], rows: &[Vec<String>], arrangement: ContentArrangement) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(arrangement).enforce_styling();
    // Some terminals do not tell their width, and columns of single letters are read by nobody.
    if table.width().is_none_or(|width| width < NARROWEST) {
        table.set_width(NARROWEST);
    }
    table.set_header(columns.iter().map(|column| {
        let (Column::Words(name) | Column::Numbers(name)) = column;
        Cell::new(name).add_attribute(Attribute::Bold)
    }));
    for row in rows {
        table.add_row(row);
    }
    for (index, (column, shown)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        shown.set_padding((0, if index + 1 < columns.len() { GAP } else { 0 }));
        if let Column::Numbers(_) = column {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Prints names and what is to be said of them, one below the other.
pub fn print_facts(facts: &[(&str, String)]) -> io::Result<()> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = anstream::stdout();
    for (name, value) in facts {
        writeln!(out, "{NAME}{name:width$}{NAME:#}  {value}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_on_the_right_and_lines_have_no_tail() {
        let columns = [Column::Words("MODEL"), Column::Numbers("SIZE")];
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bcdefg".to_owned(), String::new()]];
        let table = render(&columns, &rows, ContentArrangement::Disabled);
        let plain = anstream::adapter::strip_str(&table).to_string();
        insta::assert_snapshot!(plain, @r"
        MODEL   SIZE
        a          1
        bcdefg
        ");
    }
}
