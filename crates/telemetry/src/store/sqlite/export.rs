//! The next pages of an export.

use hob_core::Moment;
use rusqlite::{Connection, params};

use super::rows::{Names, page_of};
use crate::store::{ExportPage, ExportPosition};

/// After this many calls no more pages are read.
pub(crate) const MIN_CALLS: usize = 1000;

const PAGES: &str = "
    SELECT first_started, id, inferences FROM telemetry_page
    WHERE (first_started, id) > (?1, ?2) AND id <= ?3 ORDER BY first_started, id";

pub(super) fn page_after(
    connection: &Connection,
    mut position: ExportPosition,
) -> rusqlite::Result<ExportPage> {
    let newest = position.newest.map_or_else(|| newest_page(connection), Ok)?;
    position.newest = Some(newest);
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(PAGES)?;
    let mut pages = statement.query(params![position.first_started, position.id, newest])?;
    let mut calls = Vec::new();
    while let Some(page) = pages.next()? {
        let first_started = page.get(0)?;
        if calls.len() >= MIN_CALLS {
            let next = Some(Moment::from_microseconds(first_started));
            return Ok(ExportPage { calls, position, next });
        }
        for inference in page_of(page, 2)? {
            calls.push(names.row(inference)?);
        }
        position = ExportPosition { first_started, id: page.get(1)?, ..position };
    }
    Ok(ExportPage { calls, position, next: None })
}

fn newest_page(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM telemetry_page", [], |row| row.get(0))
}
