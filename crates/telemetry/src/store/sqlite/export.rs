//! All inferences as a stream that takes the same memory however many there are.

use hob_core::time::{Moment, UtcDay};
use hob_db::{Database, DatabaseError};
use rusqlite::{Connection, params};

use crate::store::sqlite::Telemetry;
use crate::store::sqlite::rows::{Names, Row, page_of};

/// Rows after which a fetch takes no further page.
const ENOUGH: usize = 1000;

/// Rows that may wait for others that began before them.
const MOST_HELD: usize = 16 * 1024;

const PAGES: &str = "
    SELECT first_started, id, inferences FROM telemetry_page
    WHERE (first_started, id) > (?1, ?2) AND id <= ?3 ORDER BY first_started, id";

impl Telemetry {
    /// Every inference there is now from `since` on, oldest first.
    pub fn export(&self, since: Option<UtcDay>) -> Export {
        let before = since.map_or(-1, |day| day.start().microseconds() - 1);
        Export {
            database: self.database.clone(),
            newest: None,
            last: Position { first_started: before, id: i64::MAX },
            held: Vec::new(),
            ready: Vec::new().into_iter(),
            state: ExportState::More,
        }
    }
}

/// Where a page stands in the order of an export.
#[derive(Debug, Clone, Copy)]
struct Position {
    first_started: i64,
    id: i64,
}

/// A stream of rows. Fetches some pages at a time and holds no lock in between, so that a reader that dawdles (a pager, a slow
/// pipe) keeps nobody from writing. Ends after its first error.
///
/// Pages overlap, as calls are recorded when they end: a row waits until no page that is still to come begins before it.
/// Only where more than `MOST_HELD` would have to wait, some come earlier than they should.
pub struct Export {
    database: Database,
    /// Pages above this id came after the export began, and are left out so that it ends.
    newest: Option<i64>,
    last: Position,
    held: Vec<Row>,
    ready: std::vec::IntoIter<Row>,
    state: ExportState,
}

#[derive(PartialEq, Eq)]
enum ExportState {
    More,
    Over,
}

impl Export {
    fn fetch(&mut self) -> Result<(), DatabaseError> {
        let (newest, mut last, held) = (self.newest, self.last, &mut self.held);
        let (newest, next) = self.database.read(|connection| {
            let newest = newest.map_or_else(|| newest_page(connection), Ok)?;
            let mut names = Names::new(connection)?;
            let mut statement = connection.prepare_cached(PAGES)?;
            let mut pages = statement.query(params![last.first_started, last.id, newest])?;
            let mut fetched = 0;
            while let Some(page) = pages.next()? {
                let first_started = page.get(0)?;
                if fetched >= ENOUGH {
                    return Ok((newest, Some(Moment::from_microseconds(first_started))));
                }
                for inference in page_of(page, 2)? {
                    held.push(names.row(inference)?);
                    fetched += 1;
                }
                last = Position { first_started, id: page.get(1)? };
            }
            Ok((newest, None))
        })?;
        (self.newest, self.last) = (Some(newest), last);
        // Stable, and quick on what is nearly sorted already.
        self.held.sort_by_key(|row| row.started);
        let ready = match next {
            Some(next) if self.held.len() <= MOST_HELD => {
                self.held.partition_point(|row| row.started <= next)
            }
            Some(_) => self.held.len(),
            None => {
                self.state = ExportState::Over;
                self.held.len()
            }
        };
        let rest = self.held.split_off(ready);
        self.ready = std::mem::replace(&mut self.held, rest).into_iter();
        Ok(())
    }
}

impl Iterator for Export {
    type Item = Result<Row, DatabaseError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.len() == 0 && self.state == ExportState::More {
            if let Err(error) = self.fetch() {
                self.state = ExportState::Over;
                return Some(Err(error));
            }
        }
        self.ready.next().map(Ok)
    }
}

fn newest_page(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM telemetry_page", [], |row| row.get(0))
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
