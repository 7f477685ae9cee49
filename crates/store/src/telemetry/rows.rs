//! Single inferences: the last ones, and all of them as a stream that takes the same memory however many there are.

use std::time::Duration;

use hob_core::Energy;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::error::StoreError;
use crate::savings::Dollars;
use crate::store::Store;
use crate::telemetry::{Telemetry, as_joules_if_known};
use crate::time::{Moment, UtcDay, as_seconds, as_seconds_if_known, from_microseconds};

/// Rows fetched at a time.
const PAGE: usize = 1000;

const SELECT_ROWS: &str = "
    SELECT
        inference.id, started, run, source, engine, model, agent, streamed, prompt_tokens, completion_tokens,
        cached_tokens, estimated, latency_us, first_token_us, outcome, finish_reason, error, cost_pico, energy_uj
    FROM telemetry_inference AS inference JOIN telemetry_series AS series ON series.id = inference.series";

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Complete,
    Cancelled,
    Failed,
}

impl Outcome {
    pub const ALL: [Outcome; 3] = [Outcome::Complete, Outcome::Cancelled, Outcome::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::Cancelled => "cancelled",
            Outcome::Failed => "failed",
        }
    }
}

impl FromSql for Outcome {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word = value.as_str()?;
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == word).ok_or(FromSqlError::InvalidType)
    }
}

/// One inference as it is on record. Serialises flat, so that it is a line of JSON as well as of CSV.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub started: Moment,
    pub run: String,
    pub source: String,
    pub engine: String,
    pub model: String,
    pub agent: Option<String>,
    pub streamed: bool,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: Option<u64>,
    /// Whether we counted the tokens because the engine did not.
    pub estimated: bool,
    #[serde(rename = "latency_seconds", serialize_with = "as_seconds")]
    pub latency: Duration,
    #[serde(rename = "first_token_seconds", serialize_with = "as_seconds_if_known")]
    pub first_token: Option<Duration>,
    /// Completion tokens over the whole time of the call; `None` unless it was completed and wrote some.
    pub tokens_per_second: Option<f64>,
    pub outcome: Outcome,
    pub finish_reason: Option<String>,
    pub error: Option<String>,
    /// `None` for a local engine, and for a model of the cloud whose price is unknown.
    pub cost: Option<Dollars>,
    /// `None` where it was not measured.
    #[serde(rename = "energy_joules", serialize_with = "as_joules_if_known")]
    pub energy: Option<Energy>,
}

impl Telemetry {
    /// The last `most` inferences, newest first.
    pub fn recent(&self, most: usize) -> Result<Vec<Row>, StoreError> {
        self.store.read(|connection| recent(connection, most))
    }

    /// Every inference there is now from `since` on, oldest first.
    pub fn export(&self, since: Option<UtcDay>) -> Export {
        let before = since.map_or(-1, |day| day.start().microseconds() - 1);
        Export {
            store: self.store.clone(),
            newest: None,
            last: Position { started: before, id: i64::MAX },
            page: Vec::new().into_iter(),
            state: ExportState::More,
        }
    }
}

pub(super) fn recent(connection: &Connection, most: usize) -> rusqlite::Result<Vec<Row>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let sql = format!("{SELECT_ROWS} ORDER BY started DESC, inference.id DESC LIMIT ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([most], |row| Ok(read_row(row)?.1))?.collect()
}

/// Where a row stands in the order of an export.
#[derive(Debug, Clone, Copy)]
struct Position {
    started: i64,
    id: i64,
}

/// A stream of rows. Fetches a page at a time and holds no lock in between, so that a reader that dawdles (a pager, a slow
/// pipe) keeps nobody from writing. Ends after its first error.
pub struct Export {
    store: Store,
    /// Rows above this id came after the export began, and are left out so that it ends.
    newest: Option<i64>,
    last: Position,
    page: std::vec::IntoIter<Row>,
    state: ExportState,
}

#[derive(PartialEq, Eq)]
enum ExportState {
    More,
    Over,
}

impl Export {
    fn fetch(&mut self) -> Result<(), StoreError> {
        let (newest, mut last) = (self.newest, self.last);
        let (newest, rows) = self.store.read(|connection| {
            let newest = match newest {
                Some(newest) => newest,
                None => connection.query_row(
                    "SELECT coalesce(max(id), 0) FROM telemetry_inference",
                    [],
                    |row| row.get(0),
                )?,
            };
            let sql = format!(
                "{SELECT_ROWS} WHERE (started, inference.id) > (?1, ?2) AND inference.id <= ?3
                 ORDER BY started, inference.id LIMIT ?4"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut found = statement.query(params![last.started, last.id, newest, PAGE as i64])?;
            let mut rows = Vec::with_capacity(PAGE);
            while let Some(row) = found.next()? {
                let (id, row) = read_row(row)?;
                last = Position { started: row.started.microseconds(), id };
                rows.push(row);
            }
            Ok((newest, rows))
        })?;
        if rows.len() < PAGE {
            self.state = ExportState::Over;
        }
        self.newest = Some(newest);
        self.last = last;
        self.page = rows.into_iter();
        Ok(())
    }
}

impl Iterator for Export {
    type Item = Result<Row, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && self.state == ExportState::More
            && let Err(error) = self.fetch()
        {
            self.state = ExportState::Over;
            return Some(Err(error));
        }
        self.page.next().map(Ok)
    }
}

/// A row of [`SELECT_ROWS`], and its id. By position, as exports are long and names take time to look up.
fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, Row)> {
    let count = |column: usize| row.get::<_, Option<i64>>(column).map(|count| count.map(i64::unsigned_abs));
    let agent: String = row.get(6)?;
    let completion_tokens = count(9)?.unwrap_or_default();
    let latency = from_microseconds(row.get(12)?);
    let outcome = row.get(14)?;
    let measurable = outcome == Outcome::Complete && completion_tokens > 0 && !latency.is_zero();
    let read = Row {
        started: Moment::from_microseconds(row.get(1)?),
        run: row.get(2)?,
        source: row.get(3)?,
        engine: row.get(4)?,
        model: row.get(5)?,
        agent: Some(agent).filter(|agent| !agent.is_empty()),
        streamed: row.get(7)?,
        prompt_tokens: count(8)?.unwrap_or_default(),
        completion_tokens,
        cached_tokens: count(10)?,
        estimated: row.get(11)?,
        latency,
        first_token: row.get::<_, Option<i64>>(13)?.map(from_microseconds),
        tokens_per_second: measurable.then(|| completion_tokens as f64 / latency.as_secs_f64()),
        outcome,
        finish_reason: row.get(15)?,
        error: row.get(16)?,
        cost: count(17)?.map(|pico| Dollars::from_pico(u128::from(pico))),
        energy: count(18)?.map(Energy::from_microjoules),
    };
    Ok((row.get(0)?, read))
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
