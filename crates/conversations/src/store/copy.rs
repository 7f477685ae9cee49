//! The tables, for a copy between databases.

use hob_db::copy::{CopyTable, CopyTexts};

pub const COPY_TABLES: &[CopyTable] = &[
    table("chat", &["id"]),
    table("chat_turn", &["chat", "number"]),
    table("stored_response", &["id"]),
    table("stored_conversation", &["id"]),
    table("conversation_item", &["conversation", "number"]),
];

const fn table(name: &'static str, key: &'static [&'static str]) -> CopyTable {
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new(name, key) }
}
