//! How a copy begins: by what is in its target, and by what earlier runs have copied.

use rusqlite::Transaction;

use super::state::{self, TableState};
use super::{CopyError, CopyRequest, CopyTable, ExistingRows, postgres_side, sqlite_side};
use crate::postgres::{PostgresTransaction, QueryError, QueryResult};

/// What earlier runs have copied of each table.
pub(super) enum Begin {
    Complete,
    Continue(Vec<u64>),
    /// The target must be empty, or is emptied first.
    New {
        delete: bool,
    },
}

fn decide(states: &[TableState], request: &CopyRequest<'_>, target: &str) -> Result<Begin, CopyError> {
    let of = |table: &CopyTable| states.iter().find(|state| state.name == table.name);
    let known: Vec<&TableState> = request.tables.iter().filter_map(of).collect();
    let is_unfinished = known.iter().any(|state| !state.is_complete);
    let other = known.iter().find(|state| state.source != request.source);
    match request.existing {
        ExistingRows::Delete => {
            // An interrupted one has deleted what was there.
            if is_unfinished && other.is_none() {
                return Ok(Begin::Continue(copied(request, &of)));
            }
            Ok(Begin::New { delete: true })
        }
        ExistingRows::Restart if is_unfinished => Ok(Begin::New { delete: true }),
        ExistingRows::Restart | ExistingRows::Continue => match other {
            Some(other) if is_unfinished => {
                Err(CopyError::OtherSource { target: target.to_owned(), source_name: other.source.clone() })
            }
            Some(_) => Ok(Begin::New { delete: false }),
            None if is_unfinished => Ok(Begin::Continue(copied(request, &of))),
            None if known.len() == request.tables.len() => Ok(Begin::Complete),
            None => Ok(Begin::New { delete: false }),
        },
    }
}

/// The transaction of a target in which a copy begins.
pub(super) trait BeginTransaction {
    type Error;

    fn states(&mut self) -> Result<Vec<TableState>, Self::Error>;

    fn clear(&mut self, tables: &[CopyTable]) -> Result<(), Self::Error>;

    fn count(&mut self, table: &CopyTable) -> Result<u64, Self::Error>;

    fn begin_table(&mut self, table: &CopyTable, source: &str) -> Result<(), Self::Error>;
}

/// Checks whether a copy may begin, and changes no row. The outer error is one of the database.
pub(super) fn check<T: BeginTransaction>(
    transaction: &mut T,
    request: &CopyRequest<'_>,
    target: &str,
) -> Result<Result<Begin, CopyError>, T::Error> {
    let begin = decide(&transaction.states()?, request, target);
    if let Ok(Begin::New { delete: false }) = begin
        && let Some(occupied) = occupied(transaction, request, target)?
    {
        return Ok(Err(occupied));
    }
    Ok(begin)
}

/// The error if a table of the target has rows.
fn occupied<T: BeginTransaction>(
    transaction: &mut T,
    request: &CopyRequest<'_>,
    target: &str,
) -> Result<Option<CopyError>, T::Error> {
    for table in request.tables {
        let rows = transaction.count(table)?;
        if rows > 0 {
            return Ok(Some(CopyError::Occupied { target: target.to_owned(), table: table.name, rows }));
        }
    }
    Ok(None)
}

/// Checks what is in the target, and returns how many rows of each table an earlier run has copied; `None` if it is complete. The outer
/// error is one of the database.
pub(super) fn begin<T: BeginTransaction>(
    transaction: &mut T,
    request: &CopyRequest<'_>,
    target: &str,
) -> Result<Result<Option<Vec<u64>>, CopyError>, T::Error> {
    let delete = match check(transaction, request, target)? {
        Err(error) => return Ok(Err(error)),
        Ok(Begin::Complete) => return Ok(Ok(None)),
        Ok(Begin::Continue(copied)) => {
            // An older Hob, which has begun the copy, does not know all tables.
            let known = transaction.states()?;
            for table in request.tables.iter().filter(|table| known.iter().all(|one| one.name != table.name))
            {
                transaction.begin_table(table, request.source)?;
            }
            return Ok(Ok(Some(copied)));
        }
        Ok(Begin::New { delete }) => delete,
    };
    if delete {
        transaction.clear(request.tables)?;
        if let Some(occupied) = occupied(transaction, request, target)? {
            return Ok(Err(occupied));
        }
    }
    for table in request.tables {
        transaction.begin_table(table, request.source)?;
    }
    Ok(Ok(Some(vec![0; request.tables.len()])))
}

impl BeginTransaction for PostgresTransaction<'_> {
    type Error = QueryError;

    fn states(&mut self) -> QueryResult<Vec<TableState>> {
        state::read_postgres(self)
    }

    fn clear(&mut self, tables: &[CopyTable]) -> QueryResult<()> {
        postgres_side::clear(self, tables)
    }

    fn count(&mut self, table: &CopyTable) -> QueryResult<u64> {
        postgres_side::count(self, table)
    }

    fn begin_table(&mut self, table: &CopyTable, source: &str) -> QueryResult<()> {
        state::begin_postgres(self, table.name, source)
    }
}

impl BeginTransaction for &Transaction<'_> {
    type Error = rusqlite::Error;

    fn states(&mut self) -> rusqlite::Result<Vec<TableState>> {
        state::read_sqlite(self)
    }

    fn clear(&mut self, tables: &[CopyTable]) -> rusqlite::Result<()> {
        sqlite_side::clear(self, tables)
    }

    fn count(&mut self, table: &CopyTable) -> rusqlite::Result<u64> {
        sqlite_side::count(self, table)
    }

    fn begin_table(&mut self, table: &CopyTable, source: &str) -> rusqlite::Result<()> {
        state::begin_sqlite(self, table.name, source)
    }
}

fn copied<'s>(request: &CopyRequest<'_>, of: &dyn Fn(&CopyTable) -> Option<&'s TableState>) -> Vec<u64> {
    request.tables.iter().map(|table| of(table).map_or(0, |state| state.copied)).collect()
}
