//! `hob memory search`.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use hob_config::Config;
use hob_memory::{MemoryBackend, MemoryQuery, Passage, SearchResults};

use super::excerpt::{ExcerptPart, excerpt};
use super::short_paths::ShortPaths;
use crate::args::MemorySearchArgs;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::style::{DIM, NAME, WARNING};
use crate::output::table::{self, Column, Marked};
use crate::output::text::{one_line, printable};

const COLUMNS: [Column; 3] = [Column::Numbers("SCORE"), Column::Words("SOURCE"), Column::Words("PASSAGE")];

/// Characters of a passage that are shown.
const SHOWN: usize = 240;

/// On a narrower terminal, the passage is printed below its source.
const WIDE: u16 = 100;

pub async fn run(config: &Config, args: MemorySearchArgs) -> Result<()> {
    let documents = super::documents(config, args.offline.into())?;
    let collections = super::selected(&documents, args.collection).await?;
    let query = MemoryQuery { text: args.query, top_k: args.top_k, backend: args.backend, collections };
    let (found, has_others) = {
        let _waiting = Spinner::start("searching");
        match args.all {
            true => (documents.search_all(&query).await?, false),
            false => {
                let found = documents.search(&query).await?;
                let is_empty = found.passages.is_empty();
                let one = MemoryQuery { top_k: 1, ..query };
                let has_others = is_empty && !documents.search_all(&one).await?.passages.is_empty();
                (found, has_others)
            }
        }
    };
    match (args.json, io::stdout().is_terminal()) {
        (true, _) => output::json(&found)?,
        (false, _) if has_others => {
            output::note("No passage is relevant enough. --all shows the best ones.");
        }
        (false, _) if found.passages.is_empty() => output::note("No passages found."),
        (false, true) if table::terminal_width().is_some_and(|width| width >= WIDE) => print_table(&found)?,
        (false, true) => print_blocks(&found)?,
        (false, false) => print_rows(&found)?,
    }
    Ok(())
}

/// For other programs: a line for each passage.
fn print_rows(found: &SearchResults) -> io::Result<()> {
    let row = |passage: &Passage| {
        let text: String = excerpt(passage, SHOWN).into_iter().map(|piece| piece.text).collect();
        vec![score(found, passage), one_line(&passage.location().to_string()), one_line(&text)]
    };
    table::print(&COLUMNS, &found.passages.iter().map(row).collect::<Vec<_>>())
}

/// For wide terminals: the passage next to its source, with the found words marked.
fn print_table(found: &SearchResults) -> io::Result<()> {
    let here = ShortPaths::from_process();
    let row = |passage: &Passage| {
        let place = here.shortened(passage.location().to_string());
        let pieces = excerpt(passage, SHOWN).into_iter();
        let text = pieces.fold(Marked::default(), |cell, ExcerptPart { text, is_hit }| {
            let text = printable(&text);
            if is_hit { cell.standing_out(&text) } else { cell.plain(&text) }
        });
        vec![
            Marked::default().plain(&score(found, passage)),
            Marked::default().plain(&one_line(&place)),
            text,
        ]
    };
    table::print_marked(&COLUMNS, &found.passages.iter().map(row).collect::<Vec<_>>())
}

/// For people with a narrow one: the passage below its source.
fn print_blocks(found: &SearchResults) -> io::Result<()> {
    let here = ShortPaths::from_process();
    let mut out = anstream::stdout();
    for passage in &found.passages {
        let place = one_line(&here.shortened(passage.location().to_string()));
        let title = one_line(&passage.title);
        writeln!(out, "{:>4}  {NAME}{place}{NAME:#}  {DIM}{title}{DIM:#}", score(found, passage))?;
        write!(out, "      ")?;
        for ExcerptPart { text, is_hit } in excerpt(passage, SHOWN) {
            let text = printable(&text);
            if is_hit {
                write!(out, "{WARNING}{text}{WARNING:#}")?;
            } else {
                write!(out, "{text}")?;
            }
        }
        writeln!(out, "\n")?;
    }
    Ok(())
}

/// The relevance of a passage as a readable number. Scores of a search by words have no scale, and are tiny for few documents: there the
/// best passage is 1, and the others are relative to it.
fn score(found: &SearchResults, passage: &Passage) -> String {
    let best = found.passages.first().map_or(0.0, |best| best.score);
    let shown = match found.backend {
        MemoryBackend::Vector | MemoryBackend::Hybrid => passage.score,
        MemoryBackend::Sqlite if best > 0.0 => passage.score / best,
        MemoryBackend::Sqlite => 0.0,
    };
    format!("{shown:.2}")
}

#[cfg(test)]
mod tests {
    use hob_memory::PositionUnit;

    use super::*;

    fn found(backend: MemoryBackend, scores: &[f64]) -> SearchResults {
        let passage = |score: &f64| Passage {
            source: "/notes/house.md".into(),
            title: "House".into(),
            text: "The boiler".into(),
            position: 0,
            place: PositionUnit::Line,
            line: 1,
            end_line: 1,
            tokens: 2,
            score: *score,
            marks: Vec::new(),
        };
        SearchResults { backend, passages: scores.iter().map(passage).collect() }
    }

    #[test]
    fn scores_are_readable() {
        use MemoryBackend::{Hybrid, Sqlite, Vector};
        for (backend, scores, shown) in [
            (Sqlite, &[1.9e-6][..], &["1.00"][..]),
            (Sqlite, &[8.0, 6.0, 0.5], &["1.00", "0.75", "0.06"]),
            (Sqlite, &[0.0], &["0.00"]),
            (Hybrid, &[0.31, 0.5], &["0.31", "0.50"]),
            (Vector, &[0.714, 0.2], &["0.71", "0.20"]),
        ] {
            let found = found(backend, scores);
            let said: Vec<String> = found.passages.iter().map(|passage| score(&found, passage)).collect();
            assert_eq!(said, shown, "{backend:?} {scores:?}");
        }
    }
}
