//! The tables, for a copy between databases.

use hob_db::copy::{CopyTable, CopyTexts};

pub const COPY_TABLES: &[CopyTable] = &[
    table("router_decision", &["run"]),
    table("router_class", &["class"]),
    table("router_model", &["class", "model"]),
    table("feedback", &["run"]),
];

const fn table(name: &'static str, key: &'static [&'static str]) -> CopyTable {
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new(name, key) }
}
