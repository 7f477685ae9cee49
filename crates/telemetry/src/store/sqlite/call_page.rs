//! A page of the table of calls: the newest ones that match, from a moment back.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::rows::{Names, page_of};
use crate::call_page::{CallCursor, CallPage, CallQuery, MAX_READ_CALLS};
use crate::call_record::CallRecord;
use crate::packed::Packed;
use hob_core::Moment;

const PAGES: &str = "
    SELECT last_started, inferences FROM telemetry_page WHERE first_started <= ?1 AND instr(inferences, ?2) > 0
    ORDER BY last_started DESC, id DESC";

const SERIES: &str =
    "SELECT id FROM telemetry_series WHERE (?1 IS NULL OR model = ?1) AND (?2 IS NULL OR key = ?2)";

/// Pages overlap, so pages are read until the next one is older than all that is wanted.
pub(super) fn call_page(connection: &Connection, query: &CallQuery) -> rusqlite::Result<CallPage> {
    let (begin, seen) = query.begin();
    // One more says whether there is another page.
    let most = query.limit() + seen + 1;
    let wanted = Wanted::new(connection, query)?;
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(PAGES)?;
    let mut pages = statement.query(params![begin, wanted.text])?;
    let mut found: Vec<CallRecord> = Vec::new();
    let mut read = 0;
    while let Some(page) = pages.next()? {
        let ends = Moment::from_microseconds(page.get(0)?);
        if found.len() >= most && found.last().is_none_or(|oldest| ends < oldest.started) {
            break;
        }
        if read >= MAX_READ_CALLS && ends.microseconds() < begin {
            // All later calls were read. Those that are not later are found again.
            found.retain(|call| call.started > ends);
            let page = CallPage::of(query, found);
            let next = page.next.or(Some(CallCursor { started: ends, seen: 0 }));
            return Ok(CallPage { next, ..page });
        }
        let inferences = page_of(page, 1)?;
        read += inferences.len();
        let matching = |call: &Packed<'_>| call.started <= begin && wanted.has(call);
        for inference in inferences.into_iter().rev().filter(matching).take(most) {
            found.push(names.row(inference)?);
        }
        // Stable, so that calls of one moment have the same order on every page.
        found.sort_by_key(|call| std::cmp::Reverse(call.started));
        found.truncate(most);
    }
    Ok(CallPage::of(query, found))
}

struct Wanted<'a> {
    query: &'a CallQuery,
    /// Pages without this text are skipped.
    text: String,
    /// `None` for all.
    series: Option<HashSet<i64>>,
}

impl<'a> Wanted<'a> {
    fn new(connection: &Connection, query: &'a CallQuery) -> rusqlite::Result<Self> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = match (&query.request, query.outcome) {
            (Some(request), _) => quoted(request),
            (None, Some(outcome)) => quoted(outcome.as_str()),
            (None, None) => "[".to_owned(),
        };
        let series = match (&query.model, &query.key) {
            (None, None) => None,
            (model, key) => {
                let mut statement = connection.prepare_cached(SERIES)?;
                let ids = statement.query_map(params![model, key], |row| row.get(0))?;
                Some(ids.collect::<Result<_, _>>()?)
            }
        };
        Ok(Wanted { query, text, series })
    }

    fn has(&self, call: &Packed<'_>) -> bool {
        let named = |request: &String| *call.run == **request || call.request_id.as_ref() == Some(request);
        self.query.outcome.is_none_or(|outcome| call.outcome == outcome)
            && self.series.as_ref().is_none_or(|series| series.contains(&call.series))
            && self.query.request.as_ref().is_none_or(named)
    }
}
