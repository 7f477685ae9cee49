//! Tables: columns under a header, and lists of facts.

use std::io::{self, IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use terminal_size::{Width, terminal_size_of};

use crate::output::style::{NAME, STRONG, WARNING};
use crate::output::text::{printable, wrapped};

/// Space between columns.
const GAP: u16 = 2;

/// The header of a column, and the alignment of its cells.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    Words(&'static str),
    Numbers(&'static str),
}

/// The minimum width of a table.
const NARROWEST: u16 = 60;

/// Prints rows under their headers. On a terminal long cells are wrapped to its width; piped, a row is a line.
pub fn print(columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    let arrangement =
        if io::stdout().is_terminal() { ContentArrangement::Dynamic } else { ContentArrangement::Disabled };
    writeln!(anstream::stdout(), "{}", render(columns, rows, arrangement))
}

/// A cell with highlighted words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked(String);

/// Placeholders around a highlighted word until the table is laid out. Like a colour, they have no width.
const MARK: char = '\u{2061}';
const UNMARK: char = '\u{2062}';

/// A placeholder in the first row, which also has no width. The lines above it are the header.
const FIRST_ROW: char = '\u{2063}';

impl Marked {
    pub fn plain(mut self, text: &str) -> Self {
        self.0.extend(text.chars().filter(|character| ![MARK, UNMARK].contains(character)));
        self
    }

    /// Word by word, because a line may end after each.
    pub fn standing_out(mut self, text: &str) -> Self {
        for piece in text.split_inclusive(' ') {
            let word = piece.trim_end_matches(' ');
            self.0.push(MARK);
            self = self.plain(word);
            self.0.push(UNMARK);
            self.0.push_str(&piece[word.len()..]);
        }
        self
    }
}

/// The width of the terminal, if it reports one.
pub fn terminal_width() -> Option<u16> {
    terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns)
}

/// The same as [`print()`], for a terminal and with highlighted words.
pub fn print_marked(columns: &[Column], rows: &[Vec<Marked>]) -> io::Result<()> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cell.0.clone()).collect()).collect();
    let table = render(columns, &rows, ContentArrangement::Dynamic);
    let mut out = anstream::stdout();
    table.lines().try_for_each(|line| writeln!(out, "{}", coloured(line)))
}

/// Colour in place of the marks. It ends with the line even where a word was broken in two.
fn coloured(line: &str) -> String {
    let (on, off) = (WARNING.render().to_string(), WARNING.render_reset().to_string());
    let is_open = line.matches(MARK).count() > line.matches(UNMARK).count();
    let line = line.replace(MARK, &on).replace(UNMARK, &off);
    if is_open { line + &off } else { line }
}

fn render(columns: &[Column], rows: &[Vec<String>], arrangement: ContentArrangement) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(arrangement);
    // Some terminals do not report their width, and columns of single letters are unreadable.
    table.set_width(terminal_width().map_or(NARROWEST, |width| width.max(NARROWEST)));
    table.set_header(columns.iter().map(|column| {
        let (Column::Words(name) | Column::Numbers(name)) = column;
        *name
    }));
    for (index, row) in rows.iter().enumerate() {
        let mut cells: Vec<String> = row.iter().map(|cell| printable(cell).replace(FIRST_ROW, "")).collect();
        if index == 0
            && let Some(cell) = cells.first_mut()
        {
            cell.insert(0, FIRST_ROW);
        }
        table.add_row(cells);
    }
    for (index, (column, shown)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        shown.set_padding((0, if index + 1 < columns.len() { GAP } else { 0 }));
        if let Column::Numbers(_) = column {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    with_bold_header(&table.trim_fmt())
}

/// The library knows nothing of colours, so the header gets its own after the layout.
fn with_bold_header(table: &str) -> String {
    let mut is_header = true;
    let lines = table.lines().map(|line| {
        is_header &= !line.contains(FIRST_ROW);
        if is_header { format!("{STRONG}{line}{STRONG:#}") } else { line.replace(FIRST_ROW, "") }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints names and values, one pair per line.
pub fn print_facts(facts: &[(&str, String)]) -> io::Result<()> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let terminal = terminal_width().map_or(usize::MAX, usize::from);
    let mut out = anstream::stdout();
    for (name, value) in facts {
        let line = wrapped(&format!("{name:width$}  {}", printable(value)), terminal, width + 2);
        writeln!(out, "{NAME}{}{NAME:#}{}", &line[..width], &line[width..])?;
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

    #[test]
    fn the_lines_of_the_header_are_bold_and_no_others() {
        let columns = [Column::Numbers("LONG NAME"), Column::Words("B")];
        let rows = [vec!["1".to_owned(), "\u{2063}x".to_owned()], vec!["2".to_owned(), String::new()]];
        let table = render(&columns, &rows, ContentArrangement::Disabled);
        let bold = |line: &str| format!("{STRONG}{line}{STRONG:#}");
        assert_eq!(table, format!("{}\n        1  x\n        2", bold("LONG NAME  B")));
        let empty = render(&columns, &[], ContentArrangement::Disabled);
        assert_eq!(empty, bold("LONG NAME  B"));
        assert_eq!(
            with_bold_header("LONG\nNAME\n\u{2063}1\n2"),
            format!("{}\n{}\n1\n2", bold("LONG"), bold("NAME"))
        );
    }

    #[test]
    fn highlighted_words_have_the_same_width_as_others() {
        let columns = [Column::Words("SOURCE"), Column::Words("PASSAGE")];
        let plain = ["a.md:1".to_owned(), "the boiler and its pump ".repeat(6).trim_end().to_owned()];
        let cell = (0..6).fold(Marked::default(), |cell, index| {
            let cell = cell.plain("the ").standing_out("boiler and").plain(" its pump");
            if index < 5 { cell.plain(" ") } else { cell }
        });
        let marked = [Marked::default().plain("a.md:1").0, cell.0];
        let lines = render(&columns, &[marked.to_vec()], ContentArrangement::Dynamic);
        let coloured: String = lines.lines().map(|line| coloured(line) + "\n").collect();
        assert!(coloured.contains(&format!("the {WARNING}boiler{WARNING:#} {WARNING}and{WARNING:#} its")));
        let expected = render(&columns, &[plain.to_vec()], ContentArrangement::Dynamic);
        assert!(expected.lines().count() > 3, "it is long enough to be wrapped: {expected}");
        assert_eq!(
            anstream::adapter::strip_str(&coloured).to_string(),
            anstream::adapter::strip_str(&expected).to_string() + "\n"
        );
    }

    #[test]
    fn a_colour_does_not_reach_over_the_end_of_a_line() {
        assert_eq!(coloured("x \u{2061}bo"), format!("x {WARNING}bo{WARNING:#}"));
        assert_eq!(coloured("iler\u{2062} y"), format!("iler{WARNING:#} y"));
        assert_eq!(Marked::default().plain("\u{2061}sly\u{2062}"), Marked("sly".to_owned()));
    }
}
