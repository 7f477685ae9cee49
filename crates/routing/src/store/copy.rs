//! The tables, for a copy between databases.

use hob_db::copy::CopyTable;

pub const COPY_TABLES: &[CopyTable] = &[
    CopyTable::new("router_decision", &["run"]),
    CopyTable::new("router_class", &["class"]),
    CopyTable::new("router_model", &["class", "model"]),
    CopyTable::new("feedback", &["run"]),
];
