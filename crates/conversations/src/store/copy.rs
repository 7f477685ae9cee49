//! The tables, for a copy between databases.

use hob_db::copy::{CopyTable, CopyTexts};

/// Made of the texts by the server.
const WORDS: &[&str] = &["words"];

pub const COPY_TABLES: &[CopyTable] = &[
    CopyTable { server_columns: WORDS, ..table("chat", &["id"]) },
    CopyTable { server_columns: WORDS, ..table("chat_turn", &["chat", "number"]) },
    table("saved_assistant", &["id"]),
    table("stored_response", &["id"]),
    table("stored_conversation", &["id"]),
    table("conversation_item", &["conversation", "number"]),
];

const fn table(name: &'static str, key: &'static [&'static str]) -> CopyTable {
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new(name, key) }
}
