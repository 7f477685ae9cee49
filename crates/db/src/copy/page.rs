//! The columns of a table, and a batch of its rows.

use super::value::{ColumnKind, CopyRow};

/// The columns that are copied, in the order of PostgreSQL.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) columns: Vec<(String, ColumnKind)>,
    /// The column that the server counts.
    pub(super) identity: Option<String>,
}

pub(super) enum Position {
    Offset(u64),
    After(CopyRow),
}

#[derive(Default)]
pub(super) struct Page {
    pub(super) rows: Vec<CopyRow>,
    /// The key of the last row.
    pub(super) last: CopyRow,
}
