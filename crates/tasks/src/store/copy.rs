//! The tables, for a copy between databases.

use hob_db::copy::CopyTable;

pub const COPY_TABLES: &[CopyTable] = &[CopyTable::new("task", &["id"]), CopyTable::new("task_run", &["id"])];
