//! The tables, for a copy between databases.

use hob_db::copy::{CopyTable, CopyTexts};

pub const COPY_TABLES: &[CopyTable] = &[table("task"), table("task_run")];

const fn table(name: &'static str) -> CopyTable {
    CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new(name, &["id"]) }
}
