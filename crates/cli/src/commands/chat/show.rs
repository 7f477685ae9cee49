//! Prints the last turn and the help.

use std::io::{self, Write};

use anyhow::Result;
use hob_conversations::{ChatTurn, TurnEnding};

use super::command::COMMANDS;
use crate::output;
use crate::output::markdown::{Markdown, MarkdownLook};
use crate::output::number::counted;
use crate::output::style::DIM;
use crate::output::table;
use crate::output::text::{printable, shortened};

/// Characters of a question that are shown.
const LONGEST_QUESTION: usize = 2_000;

/// The last turn of a resumed conversation.
pub fn show_last(turns: &[ChatTurn], look: Option<MarkdownLook>) -> Result<()> {
    let Some(last) = turns.last() else { return Ok(()) };
    if turns.len() > 1 {
        output::note(format_args!("… {} before", counted(turns.len() - 1, "turn")));
    }
    // A question can contain a whole text that was piped in.
    let question = shortened(&last.question, LONGEST_QUESTION);
    output::stderr_line(format_args!("{DIM}> {}{DIM:#}", printable(&question)));
    if let Some(look) = look {
        let mut markdown = Markdown::new(look);
        let shown = markdown.push(&last.answer) + &markdown.finish();
        io::stdout().write_all(shown.as_bytes())?;
    }
    match last.ending {
        TurnEnding::Complete => {}
        TurnEnding::Stopped => output::note("(stopped)"),
        TurnEnding::Cut => output::note("(the answer was cut)"),
        TurnEnding::Failed => output::note("(the answer failed)"),
    }
    output::stderr_line("");
    Ok(())
}

pub fn show_help() -> Result<()> {
    let facts: Vec<(String, String)> = COMMANDS
        .iter()
        .map(|command| (format!("{} {}", command.name, command.argument), command.does.to_owned()))
        .collect();
    let facts: Vec<(&str, String)> = facts.iter().map(|(name, does)| (name.as_str(), does.clone())).collect();
    table::print_facts(&facts)?;
    output::note(
        "End a line with \\ to continue it on the next line; a code block between ``` lines continues too. Alt-Enter \
         inserts a new line. Ctrl-C stops an answer.",
    );
    Ok(())
}
