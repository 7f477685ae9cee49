//! Single inferences: the last ones, and the last of a kind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use hob_core::RequestSource;
use hob_core::time::{Moment, as_seconds, as_seconds_if_known, from_microseconds};
use hob_db::DatabaseError;
use rusqlite::types::FromSqlError;
use rusqlite::{CachedStatement, Connection, params};
use serde::{Deserialize, Serialize};

use crate::inference::Energy;
use crate::packed::{Packed, unpack};
use crate::savings::Dollars;
use crate::store::sqlite::{Telemetry, as_joules_if_known};

const NEWEST_PAGES: &str =
    "SELECT last_started, inferences FROM telemetry_page ORDER BY last_started DESC, id DESC";

const NEWEST_PAGES_WITH: &str = "
    SELECT last_started, inferences FROM telemetry_page WHERE last_started >= ?1 AND instr(inferences, ?2) > 0
    ORDER BY last_started DESC, id DESC";

const FIND_NAMES: &str = "SELECT source, engine, model, agent FROM telemetry_series WHERE id = ?1";

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Complete,
    Cancelled,
    Failed,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::Cancelled => "cancelled",
            Outcome::Failed => "failed",
        }
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
    pub fn recent(&self, most: usize) -> Result<Vec<Row>, DatabaseError> {
        self.database.read(|connection| recent(connection, most))
    }

    /// The last inference of a run since a moment; `None` where there is none.
    pub fn find_run(&self, run: &str, since: Moment) -> Result<Option<Row>, DatabaseError> {
        let quoted = serde_json::Value::from(run).to_string();
        let search = Search { since, text: &quoted };
        self.database.read(|connection| newest(connection, &search, |inference, _| inference.run == run))
    }

    /// The last inference since a moment that was completed, without those of some sources and of some runs.
    pub fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<Row>, DatabaseError> {
        let search = Search { since, text: "\"complete\"" };
        let wanted = |inference: &Packed<'_>, name: &Name| {
            inference.outcome == Outcome::Complete
                && !except_sources.iter().any(|source| source.as_str() == name.source)
                && !except_runs.contains(&&*inference.run)
        };
        self.database.read(|connection| newest(connection, &search, wanted))
    }
}

/// Of pages that overlap, the one that ends last may not have all of the last ones: pages are read until the next is older than
/// all that was found.
pub(super) fn recent(connection: &Connection, most: usize) -> rusqlite::Result<Vec<Row>> {
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(NEWEST_PAGES)?;
    let mut pages = statement.query([])?;
    let mut found: Vec<Row> = Vec::new();
    while let Some(page) = pages.next()? {
        let ends = Moment::from_microseconds(page.get(0)?);
        if found.len() >= most && found.last().is_none_or(|oldest| ends < oldest.started) {
            break;
        }
        for inference in page_of(page, 1)?.into_iter().rev().take(most) {
            found.push(names.row(inference)?);
        }
        found.sort_by_key(|row| std::cmp::Reverse(row.started));
        found.truncate(most);
    }
    Ok(found)
}

/// Where to look for an inference.
struct Search<'a> {
    since: Moment,
    /// Pages without this text are not opened.
    text: &'a str,
}

/// The newest inference that is `wanted`.
fn newest(
    connection: &Connection,
    search: &Search<'_>,
    wanted: impl Fn(&Packed<'_>, &Name) -> bool,
) -> rusqlite::Result<Option<Row>> {
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(NEWEST_PAGES_WITH)?;
    let mut pages = statement.query(params![search.since.microseconds(), search.text])?;
    let mut found: Option<Row> = None;
    while let Some(page) = pages.next()? {
        let ends = Moment::from_microseconds(page.get(0)?);
        if found.as_ref().is_some_and(|found| ends <= found.started) {
            break;
        }
        let after =
            found.as_ref().map_or(search.since.microseconds(), |found| found.started.microseconds() + 1);
        for inference in page_of(page, 1)?.into_iter().rev() {
            if inference.started < after {
                break;
            }
            if wanted(&inference, names.of(inference.series)?) {
                found = Some(names.row(inference)?);
                break;
            }
        }
    }
    Ok(found)
}

/// The inferences of a page out of this column of a row.
pub(super) fn page_of<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Vec<Packed<'r>>> {
    Ok(unpack(row.get_ref(column)?.as_str()?).map_err(FromSqlError::other)?)
}

/// What the calls of a series have in common.
struct Name {
    source: String,
    engine: String,
    model: String,
    agent: Option<String>,
}

/// The names of series, each looked up once. For one reading only: the id of one that was deleted is given to another.
pub(super) struct Names<'c> {
    find: CachedStatement<'c>,
    known: HashMap<i64, Name>,
}

impl<'c> Names<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Names { find: connection.prepare_cached(FIND_NAMES)?, known: HashMap::new() })
    }

    /// An inference with the names of its series.
    pub(super) fn row(&mut self, inference: Packed<'_>) -> rusqlite::Result<Row> {
        let name = self.of(inference.series)?;
        let Packed { completion_tokens, outcome, .. } = inference;
        let latency = from_microseconds(inference.latency_us);
        let measurable = outcome == Outcome::Complete && completion_tokens > 0 && !latency.is_zero();
        Ok(Row {
            started: Moment::from_microseconds(inference.started),
            run: inference.run.into_owned(),
            source: name.source.clone(),
            engine: name.engine.clone(),
            model: name.model.clone(),
            agent: name.agent.clone(),
            streamed: inference.streamed != 0,
            prompt_tokens: inference.prompt_tokens,
            completion_tokens,
            cached_tokens: inference.cached_tokens,
            estimated: inference.estimated != 0,
            latency,
            first_token: inference.first_token_us.map(from_microseconds),
            tokens_per_second: measurable.then(|| completion_tokens as f64 / latency.as_secs_f64()),
            outcome,
            finish_reason: inference.finish_reason,
            error: inference.error,
            cost: inference.cost_pico.map(|pico| Dollars::from_pico(u128::from(pico))),
            energy: inference.energy_uj.map(Energy::from_microjoules),
        })
    }

    fn of(&mut self, series: i64) -> rusqlite::Result<&Name> {
        match self.known.entry(series) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => Ok(unknown.insert(self.find.query_row([series], read_name)?)),
        }
    }
}

fn read_name(row: &rusqlite::Row<'_>) -> rusqlite::Result<Name> {
    let agent: String = row.get(3)?;
    let agent = Some(agent).filter(|agent| !agent.is_empty());
    Ok(Name { source: row.get(0)?, engine: row.get(1)?, model: row.get(2)?, agent })
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
