//! Prints the saved conversations as a table.

use anyhow::Result;
use hob_conversations::ChatSummary;
use jiff::Timestamp;

use crate::output;
use crate::output::table::{self, Column};
use crate::output::text::{one_line, shortened};
use crate::output::time::span;

const COLUMNS: [Column; 4] =
    [Column::Numbers("ID"), Column::Words("LAST USED"), Column::Numbers("TURNS"), Column::Words("TITLE")];

/// Characters of a title in the table.
const LONGEST: usize = 60;

pub fn print(chats: &[ChatSummary]) -> Result<()> {
    if chats.is_empty() {
        output::note("There are no saved conversations yet.");
        return Ok(());
    }
    let now = Timestamp::now();
    let rows: Vec<Vec<String>> = chats.iter().map(|chat| row(chat, now)).collect();
    Ok(table::print(&COLUMNS, &rows)?)
}

fn row(chat: &ChatSummary, now: Timestamp) -> Vec<String> {
    let used = format!("{} ago", span(now.duration_since(chat.last_used.timestamp())));
    let title = shortened(&one_line(&chat.title), LONGEST);
    let title = if chat.pinned { format!("{title} (pinned)") } else { title };
    vec![chat.id.to_string(), used, chat.turns.to_string(), title]
}
