//! The tables, for a copy between databases.

use hob_db::copy::{CopyTable, CopyTexts};

pub const COPY_TABLES: &[CopyTable] =
    &[CopyTable { texts: CopyTexts::Escaped, ..CopyTable::new("source_page", &["name"]) }];
