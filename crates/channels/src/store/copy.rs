//! The tables, for a copy between databases. Leases and requests between processes are not copied: they end with the processes.

use hob_db::copy::{CopyTable, CopyTexts};

pub const COPY_TABLES: &[CopyTable] = &[
    table("channel_inbox", &["id"]),
    table("conversation_line", &["id"]),
    table("channel_sender", &["channel", "sender"]),
    table("channel_pairing", &["channel", "sender"]),
    table("channel_position", &["channel"]),
];

const fn table(name: &'static str, key: &'static [&'static str]) -> CopyTable {
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new(name, key) }
}
