//! Copies tables between a SQLite file and PostgreSQL, in batches that a later run continues. Knows the tables only by what a
//! capability lists of them.
//!
//! Most tables are equal in both databases. The columns and their types are read from PostgreSQL, so a new column is copied without a change
//! here. Where the databases differ, a [`CopyTable`] says how.
//!
//! | file | what |
//! |---|---|
//! | `value` | values, and their form in both databases |
//! | `page` | the columns of a table, and a batch of its rows |
//! | `sqlite_side` | rows of a file |
//! | `postgres_side` | rows of a server |
//! | `state` | how far a copy is, in its target |
//! | `begin` | what is in the target, and what earlier runs have copied |
//! | `run` | the order of the work, and the comparison at the end |

mod begin;
mod page;
mod postgres_side;
mod run;
mod sqlite_side;
mod state;
#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
mod value;

use thiserror::Error;

use crate::DatabaseError;
use crate::postgres::{PostgresTransaction, QueryResult};

pub use run::{check_postgres_target, check_sqlite_target, copy_to_postgres, copy_to_sqlite};
pub use state::forget_copy;
pub use value::{CopyRow, CopyValue};

/// A table that is in both databases.
#[derive(Clone, Copy)]
pub struct CopyTable {
    /// In PostgreSQL, and in SQLite unless `sqlite` says otherwise.
    pub name: &'static str,
    /// The unique key of PostgreSQL's rows, which are read in its order.
    pub key: &'static [&'static str],
    /// Columns of PostgreSQL that are not copied, because the server sets them.
    pub server_columns: &'static [&'static str],
    /// Columns that may differ after a copy, such as rounded numbers.
    pub not_compared: &'static [&'static str],
    pub texts: CopyTexts,
    /// `None`: the table is equal in SQLite.
    pub sqlite: Option<SqliteForm>,
    /// A script that deletes all rows in SQLite; `None`: `DELETE FROM`.
    pub sqlite_clear: Option<&'static str>,
    pub postgres: PostgresForm,
}

/// How PostgreSQL stores the texts of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyTexts {
    /// U+0000 is replaced, see [`crate::postgres::clean_name`].
    Plain,
    /// U+0000 is escaped, see [`crate::postgres::SqlText`].
    Escaped,
}

/// The rows of a table in SQLite.
#[derive(Clone, Copy)]
pub struct SqliteForm {
    /// The table that has the rows.
    pub table: &'static str,
    /// A table or a query in brackets, which has the columns.
    pub rows: &'static str,
    /// The unique key of these rows.
    pub key: &'static [&'static str],
    /// `None`: the columns of PostgreSQL.
    pub columns: Option<&'static [&'static str]>,
    /// A script that inserts the rows of the temporary table `copied`.
    pub insert: &'static str,
    pub conversion: Option<RowConversion>,
}

/// Between the columns of SQLite and those of PostgreSQL.
#[derive(Clone, Copy)]
pub struct RowConversion {
    pub to_postgres: fn(CopyRow) -> Option<CopyRow>,
    pub to_sqlite: fn(CopyRow) -> Option<CopyRow>,
}

pub type PrepareTable = fn(&mut PostgresTransaction<'_>) -> QueryResult<()>;

pub type AfterBatch = fn(&mut PostgresTransaction<'_>, &[CopyRow]) -> QueryResult<()>;

/// What is special about a table in PostgreSQL.
#[derive(Clone, Copy)]
pub struct PostgresForm {
    /// Runs before rows are written.
    pub prepare: Option<PrepareTable>,
    /// Expressions that read a column, by its name.
    pub expressions: &'static [(&'static str, &'static str)],
    /// Runs after each batch, with its rows.
    pub after_batch: Option<AfterBatch>,
    /// Deletes all rows; `None`: `DELETE FROM`.
    pub clear: Option<&'static str>,
}

impl CopyTable {
    /// A table that is equal in both databases.
    pub const fn new(name: &'static str, key: &'static [&'static str]) -> Self {
        CopyTable {
            name,
            key,
            server_columns: &[],
            not_compared: &[],
            texts: CopyTexts::Plain,
            sqlite: None,
            sqlite_clear: None,
            postgres: PostgresForm { prepare: None, expressions: &[], after_batch: None, clear: None },
        }
    }

    fn sqlite_key(&self) -> &'static [&'static str] {
        self.sqlite.map_or(self.key, |form| form.key)
    }

    fn sqlite_rows(&self) -> &'static str {
        self.sqlite.map_or(self.name, |form| form.rows)
    }
}

/// What to do with data in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingRows {
    /// Continue an unfinished copy of the same source. Other rows are an error.
    Continue,
    /// Delete what an unfinished copy has written, and begin again. Other rows are an error.
    Restart,
    /// Delete them.
    Delete,
}

/// What to copy.
pub struct CopyRequest<'a> {
    /// Referenced tables come before the tables that reference them.
    pub tables: &'a [CopyTable],
    /// The name of the source, by which an unfinished copy of it is recognised.
    pub source: &'a str,
    pub existing: ExistingRows,
    /// Called after each batch.
    pub listener: &'a dyn Fn(&CopyProgress<'_>),
}

/// The progress of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress<'a> {
    pub table: &'a str,
    pub rows: u64,
    pub total: u64,
    pub step: CopyStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    Copying,
    Comparing,
}

/// The rows of each table in source and target, which are equal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyReport {
    pub tables: Vec<(String, u64)>,
    /// Rows of all tables that this run copied.
    pub copied: u64,
    /// Whether an earlier run had copied everything.
    pub was_complete: bool,
}

#[derive(Debug, Error)]
pub enum CopyError {
    #[error(transparent)]
    Database(#[from] DatabaseError),

    #[error("{target} already has data ({table}: {rows} rows). Use an empty database.")]
    Occupied { target: String, table: &'static str, rows: u64 },

    #[error(
        "{target} has an unfinished copy of {source_name}. Continue that one, or add --restart to delete it and begin again."
    )]
    OtherSource { target: String, source_name: String },

    #[error(
        "{table} differs: the source has {expected} rows, {target} has {found}{}. The source was probably changed during the copy. \
         Stop all programs that use it, and run the command again with --restart.",
        if expected == found { ", with other contents" } else { "" }
    )]
    Differs { table: &'static str, target: String, expected: u64, found: u64 },

    #[error("{target} has no table {table}. Update Hob, and run the command again.")]
    MissingTable { table: &'static str, target: String },

    #[error("another copy into {target} is running. Wait until it is done, or stop it.")]
    Concurrent { target: String },
}
