//! The order of the work, and the comparison at the end.

use rusqlite::Connection;

use super::begin::{begin, check};
use super::page::{Described, Page, Position};
use super::state::{self, CopiedRows};
use super::value::{CopyRow, CopyValue, Tally};
use super::{
    CopyError, CopyProgress, CopyReport, CopyRequest, CopyStep, CopyTable, postgres_side, sqlite_side,
};
use crate::postgres::{PostgresDatabase, PostgresTransaction};
use crate::{Database, DbResult};

/// The most rows and about the most bytes of a batch.
const MAX_ROWS: usize = 2_048;
const MAX_BYTES: usize = 4 << 20;

/// Rows of the first batch of a table, whose size is not known yet.
const FIRST_ROWS: usize = 64;

/// A snapshot of a database.
trait Reader {
    fn count(&mut self, table: &CopyTable) -> DbResult<u64>;

    fn page(
        &mut self,
        table: &CopyTable,
        described: &Described,
        position: &Position,
        limit: i64,
    ) -> DbResult<Page>;
}

/// A database that gets rows.
trait Writer {
    fn name(&self) -> String;

    /// Checks what is there, and returns how many rows of each table an earlier run has copied; `None` if it is complete.
    fn begin(&mut self, request: &CopyRequest<'_>) -> Result<Option<Vec<u64>>, CopyError>;

    /// Creates a table that is only created when it is needed.
    fn prepare(&mut self, table: &CopyTable) -> DbResult<Option<Described>>;

    /// Writes rows that follow the first `from` ones. Returns `false` if another copy has written meanwhile.
    fn write(
        &mut self,
        table: &CopyTable,
        described: &Described,
        rows: &[CopyRow],
        from: u64,
    ) -> DbResult<bool>;

    /// Reads the table again.
    fn tally(
        &mut self,
        table: &CopyTable,
        described: &Described,
        listener: &mut dyn FnMut(u64),
    ) -> DbResult<Tally>;

    /// Ends the copy, which has copied this many rows of each table. Returns `false` if another copy has begun meanwhile.
    fn complete(&mut self, tables: &[(CopyTable, u64)]) -> DbResult<bool>;
}

/// Copies from a file to a server. Blocks.
pub fn copy_to_postgres(
    source: &Database,
    target: &PostgresDatabase,
    request: &CopyRequest<'_>,
) -> Result<CopyReport, CopyError> {
    source.read(|connection| {
        let mut reader = SqliteReader { database: source, connection };
        let mut writer = PostgresWriter { database: target, source: request.source };
        Ok(copy(&mut reader, &mut writer, request))
    })?
}

/// Copies from a server to a file, out of one snapshot. Blocks.
pub fn copy_to_sqlite(
    source: &PostgresDatabase,
    target: &Database,
    request: &CopyRequest<'_>,
) -> Result<CopyReport, CopyError> {
    source.read(|transaction| {
        transaction.wait_without_limit()?;
        // The file is written, and read again to compare it, while the snapshot waits.
        transaction.pause_without_limit()?;
        let mut described = Vec::new();
        for table in request.tables {
            described.push((table.name, postgres_side::describe(transaction, table)?));
        }
        let mut reader = PostgresReader { database: source, transaction };
        let mut writer = SqliteWriter { database: target, source: request.source, described };
        Ok(copy(&mut reader, &mut writer, request))
    })?
}

/// Fails if [`copy_to_postgres`] would refuse the target, and changes none of its rows. A copy of several groups of tables checks all
/// groups before the first. Blocks.
pub fn check_postgres_target(target: &PostgresDatabase, request: &CopyRequest<'_>) -> Result<(), CopyError> {
    let name = PostgresWriter { database: target, source: request.source }.name();
    let checked = target.write(|transaction| {
        transaction.wait_without_limit()?;
        check(transaction, request, &name)
    })?;
    checked.map(drop)
}

/// The same for [`copy_to_sqlite`].
pub fn check_sqlite_target(target: &Database, request: &CopyRequest<'_>) -> Result<(), CopyError> {
    let name = target.path().display().to_string();
    target.write(|mut transaction| check(&mut transaction, request, &name))?.map(drop)
}

fn copy(
    reader: &mut dyn Reader,
    writer: &mut dyn Writer,
    request: &CopyRequest<'_>,
) -> Result<CopyReport, CopyError> {
    let Some(begun) = writer.begin(request)? else {
        return Ok(CopyReport { was_complete: true, ..CopyReport::default() });
    };
    let mut report = CopyReport::default();
    let (mut copied, mut ended) = (Vec::new(), Vec::new());
    for (table, done) in request.tables.iter().zip(begun) {
        let total = reader.count(table)?;
        report.tables.push((table.name.to_owned(), total));
        if done > total {
            return Err(CopyError::Differs {
                table: table.name,
                target: writer.name(),
                expected: total,
                found: done,
            });
        }
        let mut here = done;
        if total > 0 {
            let Some(described) = writer.prepare(table)? else {
                return Err(CopyError::MissingTable { table: table.name, target: writer.name() });
            };
            here += copy_table(reader, writer, request, (table, &described), (done, total))?;
            report.copied += here - done;
            copied.push((table, described, total));
        }
        ended.push((*table, here));
    }
    for (table, described, total) in &copied {
        compare(reader, writer, request, (table, described), *total)?;
    }
    if !writer.complete(&ended)? {
        return Err(CopyError::Concurrent { target: writer.name() });
    }
    Ok(report)
}

/// Returns how many rows were copied.
fn copy_table(
    reader: &mut dyn Reader,
    writer: &mut dyn Writer,
    request: &CopyRequest<'_>,
    (table, described): (&CopyTable, &Described),
    (begin, total): (u64, u64),
) -> Result<u64, CopyError> {
    let (mut done, mut position, mut limit) = (begin, Position::Offset(begin), FIRST_ROWS);
    loop {
        let progress =
            CopyProgress { table: table.name, rows: done, total: total.max(done), step: CopyStep::Copying };
        (request.listener)(&progress);
        let page = reader.page(table, described, &position, limit as i64)?;
        if page.rows.is_empty() {
            return Ok(done - begin);
        }
        if !writer.write(table, described, &page.rows, done)? {
            return Err(CopyError::Concurrent { target: writer.name() });
        }
        done += page.rows.len() as u64;
        limit = next_limit(&page.rows);
        position = Position::After(page.last);
    }
}

/// As many rows as fit, if they are like the last ones.
fn next_limit(rows: &[CopyRow]) -> usize {
    let bytes: usize = rows.iter().flatten().map(CopyValue::size).sum();
    (MAX_BYTES / (bytes / rows.len().max(1)).max(1)).clamp(1, MAX_ROWS)
}

fn compare(
    reader: &mut dyn Reader,
    writer: &mut dyn Writer,
    request: &CopyRequest<'_>,
    (table, described): (&CopyTable, &Described),
    total: u64,
) -> Result<(), CopyError> {
    let mut listener = |rows| {
        let progress = CopyProgress { table: table.name, rows, total, step: CopyStep::Comparing };
        (request.listener)(&progress);
    };
    let expected = tally(reader, table, described, &mut listener)?;
    let found = writer.tally(table, described, &mut listener)?;
    if expected == found {
        return Ok(());
    }
    let target = writer.name();
    Err(CopyError::Differs { table: table.name, target, expected: expected.rows, found: found.rows })
}

fn tally(
    reader: &mut dyn Reader,
    table: &CopyTable,
    described: &Described,
    listener: &mut dyn FnMut(u64),
) -> DbResult<Tally> {
    let mut tally = Tally::default();
    let (mut position, mut limit) = (Position::Offset(0), FIRST_ROWS);
    loop {
        listener(tally.rows);
        let page = reader.page(table, described, &position, limit as i64)?;
        if page.rows.is_empty() {
            return Ok(tally);
        }
        for row in &page.rows {
            let columns = row.iter().zip(&described.columns);
            let compared = columns.filter(|(_, (name, _))| !table.not_compared.contains(&name.as_str()));
            tally.add(compared.map(|(value, _)| value));
        }
        limit = next_limit(&page.rows);
        position = Position::After(page.last);
    }
}

struct SqliteReader<'a> {
    database: &'a Database,
    connection: &'a Connection,
}

impl Reader for SqliteReader<'_> {
    fn count(&mut self, table: &CopyTable) -> DbResult<u64> {
        sqlite_side::count(self.connection, table).map_err(|error| self.database.explain(error))
    }

    fn page(
        &mut self,
        table: &CopyTable,
        described: &Described,
        position: &Position,
        limit: i64,
    ) -> DbResult<Page> {
        sqlite_side::page(self.connection, table, described, position, limit)
            .map_err(|error| self.database.explain(error))
    }
}

struct PostgresReader<'a, 'c> {
    database: &'a PostgresDatabase,
    transaction: &'a mut PostgresTransaction<'c>,
}

impl Reader for PostgresReader<'_, '_> {
    fn count(&mut self, table: &CopyTable) -> DbResult<u64> {
        postgres_side::count(self.transaction, table).map_err(|error| self.database.explain(error))
    }

    fn page(
        &mut self,
        table: &CopyTable,
        described: &Described,
        position: &Position,
        limit: i64,
    ) -> DbResult<Page> {
        postgres_side::page(self.transaction, table, described, position, limit)
            .map_err(|error| self.database.explain(error))
    }
}

struct PostgresWriter<'a> {
    database: &'a PostgresDatabase,
    source: &'a str,
}

impl Writer for PostgresWriter<'_> {
    fn name(&self) -> String {
        format!("the database at {}", self.database.server())
    }

    fn begin(&mut self, request: &CopyRequest<'_>) -> Result<Option<Vec<u64>>, CopyError> {
        let target = self.name();
        self.database.write(|transaction| {
            transaction.wait_without_limit()?;
            begin(transaction, request, &target)
        })?
    }

    fn prepare(&mut self, table: &CopyTable) -> DbResult<Option<Described>> {
        self.database.write(|transaction| {
            if let Some(prepare) = table.postgres.prepare {
                prepare(transaction)?;
            }
            postgres_side::describe(transaction, table)
        })
    }

    fn write(
        &mut self,
        table: &CopyTable,
        described: &Described,
        rows: &[CopyRow],
        from: u64,
    ) -> DbResult<bool> {
        self.database.write(|transaction| {
            // First, because it locks out another copy.
            let step =
                CopiedRows { name: table.name, source: self.source, from, to: from + rows.len() as u64 };
            if !state::advance_postgres(transaction, &step)? {
                return Ok(false);
            }
            postgres_side::insert(transaction, table, described, rows)?;
            Ok(true)
        })
    }

    fn tally(
        &mut self,
        table: &CopyTable,
        described: &Described,
        listener: &mut dyn FnMut(u64),
    ) -> DbResult<Tally> {
        self.database.read(|transaction| {
            let mut reader = PostgresReader { database: self.database, transaction };
            Ok(tally(&mut reader, table, described, listener))
        })?
    }

    fn complete(&mut self, tables: &[(CopyTable, u64)]) -> DbResult<bool> {
        self.database.write(|transaction| {
            transaction.wait_without_limit()?;
            for (table, copied) in tables {
                if !state::has_copied_postgres(transaction, table.name, self.source, *copied)? {
                    return Ok(false);
                }
            }
            for (table, _) in tables {
                state::complete_postgres(transaction, table.name)?;
                if let Some(described) = postgres_side::describe(transaction, table)? {
                    postgres_side::finish(transaction, table, &described)?;
                }
            }
            Ok(true)
        })
    }
}

struct SqliteWriter<'a> {
    database: &'a Database,
    source: &'a str,
    described: Vec<(&'static str, Option<Described>)>,
}

impl Writer for SqliteWriter<'_> {
    fn name(&self) -> String {
        self.database.path().display().to_string()
    }

    fn begin(&mut self, request: &CopyRequest<'_>) -> Result<Option<Vec<u64>>, CopyError> {
        let target = self.name();
        self.database.write(|mut transaction| begin(&mut transaction, request, &target))?
    }

    fn prepare(&mut self, table: &CopyTable) -> DbResult<Option<Described>> {
        let described = self.described.iter_mut().find(|(name, _)| *name == table.name);
        Ok(described.and_then(|(_, described)| described.take()))
    }

    fn write(
        &mut self,
        table: &CopyTable,
        described: &Described,
        rows: &[CopyRow],
        from: u64,
    ) -> DbResult<bool> {
        self.database.write(|transaction| {
            let step =
                CopiedRows { name: table.name, source: self.source, from, to: from + rows.len() as u64 };
            if !state::advance_sqlite(transaction, &step)? {
                return Ok(false);
            }
            sqlite_side::insert(transaction, table, described, rows)?;
            Ok(true)
        })
    }

    fn tally(
        &mut self,
        table: &CopyTable,
        described: &Described,
        listener: &mut dyn FnMut(u64),
    ) -> DbResult<Tally> {
        self.database.read(|connection| {
            let mut reader = SqliteReader { database: self.database, connection };
            Ok(tally(&mut reader, table, described, listener))
        })?
    }

    fn complete(&mut self, tables: &[(CopyTable, u64)]) -> DbResult<bool> {
        self.database.write(|transaction| {
            for (table, copied) in tables {
                if !state::has_copied_sqlite(transaction, table.name, self.source, *copied)? {
                    return Ok(false);
                }
            }
            for (table, _) in tables {
                state::complete_sqlite(transaction, table.name)?;
            }
            Ok(true)
        })
    }
}
