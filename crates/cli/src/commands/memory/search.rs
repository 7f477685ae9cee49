//! `hob memory search`.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use hob_config::Config;
use hob_core::{Found, Memory, MemoryQuery, Passage};

use super::excerpt::{Piece, excerpt};
use crate::args::MemorySearchArgs;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::style::{DIM, NAME, WARNING};
use crate::output::table::{self, Column};
use crate::output::text::{one_line, printable};

const COLUMNS: [Column; 3] = [Column::Numbers("SCORE"), Column::Words("SOURCE"), Column::Words("PASSAGE")];

/// Characters of a passage that are shown.
const SHOWN: usize = 240;

pub async fn run(config: &Config, args: MemorySearchArgs) -> Result<()> {
    let documents = super::documents(config, args.offline.into())?;
    let query = MemoryQuery { text: args.query, top_k: args.top_k, backend: args.backend };
    let found = {
        let _waiting = Spinner::start("searching");
        documents.search(&query).await?
    };
    match (args.json, io::stdout().is_terminal()) {
        (true, _) => output::json(&found)?,
        (false, _) if found.passages.is_empty() => output::note("Nothing was found."),
        (false, true) => print_blocks(&found)?,
        (false, false) => print_rows(&found)?,
    }
    Ok(())
}

/// For other programs: a line for each passage.
fn print_rows(found: &Found) -> io::Result<()> {
    let row = |passage: &Passage| {
        let text: String = excerpt(passage, SHOWN).into_iter().map(|piece| piece.text).collect();
        vec![score(passage), one_line(&passage.location().to_string()), one_line(&text)]
    };
    table::print(&COLUMNS, &found.passages.iter().map(row).collect::<Vec<_>>())
}

/// For people: the passage below its source, and in it the words that were found.
fn print_blocks(found: &Found) -> io::Result<()> {
    let mut out = anstream::stdout();
    for passage in &found.passages {
        let place = one_line(&passage.location().to_string());
        let title = one_line(&passage.title);
        writeln!(out, "{:>6}  {NAME}{place}{NAME:#}  {DIM}{title}{DIM:#}", score(passage))?;
        write!(out, "        ")?;
        for Piece { text, is_hit } in excerpt(passage, SHOWN) {
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

/// Among few documents every word is common, and then all scores are tiny; they differ all the same.
fn score(passage: &Passage) -> String {
    match passage.score {
        tiny if tiny.abs() < 0.001 => format!("{tiny:.1e}"),
        score => format!("{score:.3}"),
    }
}
