//! Single calls: the last ones, and the last of a kind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hob_core::time::from_microseconds;
use hob_core::{Moment, RequestSource};
use rusqlite::types::FromSqlError;
use rusqlite::{CachedStatement, Connection, params};

use crate::call_record::{CallOutcome, CallRecord, tokens_per_second};
use crate::inference::Energy;
use crate::packed::{Packed, unpack};
use crate::savings::Dollars;

const NEWEST_PAGES: &str =
    "SELECT last_started, inferences FROM telemetry_page ORDER BY last_started DESC, id DESC";

const NEWEST_PAGES_WITH: &str = "
    SELECT last_started, inferences FROM telemetry_page WHERE last_started >= ?1 AND instr(inferences, ?2) > 0
    ORDER BY last_started DESC, id DESC";

const FIND_NAMES: &str = "SELECT source, engine, model, agent, key FROM telemetry_series WHERE id = ?1";

pub(super) fn find_run(
    connection: &Connection,
    run: &str,
    since: Moment,
) -> rusqlite::Result<Option<CallRecord>> {
    let quoted = serde_json::Value::from(run).to_string();
    newest(connection, &Search { since, text: &quoted }, |inference, _| inference.run == run)
}

pub(super) fn last_complete(
    connection: &Connection,
    since: Moment,
    except_sources: &[RequestSource],
    except_runs: &[&str],
) -> rusqlite::Result<Option<CallRecord>> {
    let search = Search { since, text: "\"complete\"" };
    let wanted = |inference: &Packed<'_>, name: &Name| {
        inference.outcome == CallOutcome::Complete
            && !except_sources.iter().any(|source| source.as_str() == name.source)
            && !except_runs.contains(&&*inference.run)
    };
    newest(connection, &search, wanted)
}

/// Pages overlap, so pages are read until the next one is older than all that was found.
pub(super) fn recent(connection: &Connection, most: usize) -> rusqlite::Result<Vec<CallRecord>> {
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(NEWEST_PAGES)?;
    let mut pages = statement.query([])?;
    let mut found: Vec<CallRecord> = Vec::new();
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

struct Search<'a> {
    since: Moment,
    /// Pages without this text are skipped.
    text: &'a str,
}

/// The newest matching inference.
fn newest(
    connection: &Connection,
    search: &Search<'_>,
    wanted: impl Fn(&Packed<'_>, &Name) -> bool,
) -> rusqlite::Result<Option<CallRecord>> {
    let mut names = Names::new(connection)?;
    let mut statement = connection.prepare_cached(NEWEST_PAGES_WITH)?;
    let mut pages = statement.query(params![search.since.microseconds(), search.text])?;
    let mut found: Option<CallRecord> = None;
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

/// The inferences in a column of a row.
pub(super) fn page_of<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Vec<Packed<'r>>> {
    Ok(unpack(row.get_ref(column)?.as_str()?).map_err(FromSqlError::other)?)
}

struct Name {
    source: String,
    engine: String,
    model: String,
    agent: Option<String>,
    key: Option<String>,
}

/// The names of series, each looked up once. For one transaction only, because ids of deleted series are reused.
pub(super) struct Names<'c> {
    find: CachedStatement<'c>,
    known: HashMap<i64, Name>,
}

impl<'c> Names<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Names { find: connection.prepare_cached(FIND_NAMES)?, known: HashMap::new() })
    }

    /// Adds the names of its series to an inference.
    pub(super) fn row(&mut self, inference: Packed<'_>) -> rusqlite::Result<CallRecord> {
        let name = self.of(inference.series)?;
        let Packed { completion_tokens, outcome, .. } = inference;
        let latency = from_microseconds(inference.latency_us);
        Ok(CallRecord {
            started: Moment::from_microseconds(inference.started),
            run: inference.run.into_owned(),
            source: name.source.clone(),
            engine: name.engine.clone(),
            model: name.model.clone(),
            agent: name.agent.clone(),
            key: name.key.clone(),
            end_user: inference.end_user,
            streamed: inference.streamed != 0,
            prompt_tokens: inference.prompt_tokens,
            completion_tokens,
            cached_tokens: inference.cached_tokens,
            estimated: inference.estimated != 0,
            latency,
            first_token: inference.first_token_us.map(from_microseconds),
            tokens_per_second: tokens_per_second(outcome, completion_tokens, latency),
            outcome,
            finish_reason: inference.finish_reason,
            error: inference.error,
            cost: inference.cost_pico.map(|pico| Dollars::from_pico(u128::from(pico))),
            energy: inference.energy_uj.map(Energy::from_microjoules),
            request_id: inference.request_id,
            route: inference.route,
            host: inference.host,
            queued: inference.queue_us.map(from_microseconds),
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
    let key: String = row.get(4)?;
    let key = Some(key).filter(|key| !key.is_empty());
    Ok(Name { source: row.get(0)?, engine: row.get(1)?, model: row.get(2)?, agent, key })
}
