//! Writes a batch: rows and sums in one transaction, once.
//!
//! Several processes write at once. Rows are written first, because they lock nothing that others need. Then the series are locked
//! in one order, and the sums of days follow them: what a transaction waits for never waits for it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use hob_core::{FinishReason, Moment, UtcDay};
use hob_db::DbResult;
use hob_db::postgres::{
    PostgresDatabase, PostgresTransaction, QueryError, QueryResult, Row, ToSql, TransactionEnd, Type,
    clean_name,
};
use parking_lot::Mutex;

use crate::entry::{Cost, Entry, Series};
use crate::inference::{Inference, InferenceEnd};
use crate::latency_histogram::Durations;
use crate::savings::Prices;
use crate::store::sums::{DaySum, ServedSum, Sums, by_start};

/// Others may write to a day at the same time, unless it is being deleted. Also returns the number of this transaction.
const LOCK_DAYS: &str = "
    SELECT pg_current_xact_id()::text, pg_advisory_xact_lock_shared(hashtextextended(name, 0))
    FROM unnest($1::text[]) AS name";

const COPY: &str = "
    COPY telemetry_call (
        started, run, source, engine, model, agent, streamed, prompt_tokens, completion_tokens, cached_tokens, estimated, latency_us,
        first_token_us, outcome, finish_reason, error, cost_pico, energy_uj, key, end_user, request_id, route, host, queue_us
    ) FROM STDIN BINARY";

const RECORDED_CALL: &str = "
    SELECT 1 FROM telemetry_call WHERE xmin = ($1::text::xid8)::xid AND started = $2 AND run = $3 LIMIT 1";

const COPY_TYPES: [Type; 24] = [
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
];

const ADD_TO_SERIES: &str = "
    INSERT INTO telemetry_series AS old (
        engine, model, agent, source, key, total_calls, total_answered, total_prompt_tokens, total_completion_tokens, total_cost_pico,
        total_energy_uj, total_measured
    ) SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::bigint[], $12::bigint[]
    )
    ON CONFLICT (engine, model, agent, source, key) DO UPDATE SET
        total_calls = old.total_calls + excluded.total_calls,
        total_answered = old.total_answered + excluded.total_answered,
        total_prompt_tokens = telemetry_add(old.total_prompt_tokens, excluded.total_prompt_tokens),
        total_completion_tokens = telemetry_add(old.total_completion_tokens, excluded.total_completion_tokens),
        total_cost_pico = telemetry_add(old.total_cost_pico, excluded.total_cost_pico),
        total_energy_uj = telemetry_add(old.total_energy_uj, excluded.total_energy_uj),
        total_measured = old.total_measured + excluded.total_measured
    RETURNING id, engine, model, agent, source, key";

const ADD_TO_DAY: &str = "
    INSERT INTO telemetry_day AS old (
        day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us,
        first_token_us, first_tokens, cost_pico, unpriced, energy_uj, measured, completed_tokens
    ) SELECT * FROM unnest(
        $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
        $17::bigint[]
    )
    ON CONFLICT (day, series) DO UPDATE SET
        calls = old.calls + excluded.calls,
        failures = old.failures + excluded.failures,
        cancelled = old.cancelled + excluded.cancelled,
        estimated = old.estimated + excluded.estimated,
        prompt_tokens = telemetry_add(old.prompt_tokens, excluded.prompt_tokens),
        completion_tokens = telemetry_add(old.completion_tokens, excluded.completion_tokens),
        cached_tokens = telemetry_add(old.cached_tokens, excluded.cached_tokens),
        latency_us = telemetry_add(old.latency_us, excluded.latency_us),
        first_token_us = telemetry_add(old.first_token_us, excluded.first_token_us),
        first_tokens = old.first_tokens + excluded.first_tokens,
        cost_pico = telemetry_add(old.cost_pico, excluded.cost_pico),
        unpriced = old.unpriced + excluded.unpriced,
        energy_uj = telemetry_add(old.energy_uj, excluded.energy_uj),
        measured = old.measured + excluded.measured,
        completed_tokens = telemetry_add(old.completed_tokens, excluded.completed_tokens)";

const FIND_DURATIONS: &str = "
    SELECT day, series, latency, first_token FROM telemetry_latency
    WHERE (day, series) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))";

const REPLACE_DURATIONS: &str = "
    INSERT INTO telemetry_latency (day, series, latency, first_token)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])
    ON CONFLICT (day, series) DO UPDATE SET latency = excluded.latency, first_token = excluded.first_token";

const ADD_TO_SERVED: &str = "
    INSERT INTO telemetry_served AS old (quarter, calls, prompt_tokens, completion_tokens)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
    ON CONFLICT (quarter) DO UPDATE SET
        calls = old.calls + excluded.calls,
        prompt_tokens = telemetry_add(old.prompt_tokens, excluded.prompt_tokens),
        completion_tokens = telemetry_add(old.completion_tokens, excluded.completion_tokens)";

/// A batch whose connection broke: the server may have committed it.
pub(super) struct UnknownEnd {
    pub(super) batch: u64,
    pub(super) transaction: String,
}

/// The lock of a day.
pub(super) fn day_lock(day: UtcDay) -> String {
    format!("hob.telemetry.day.{}", day.days())
}

/// Records a batch once, even if the caller repeats it after an error that left open whether it was recorded.
pub(super) fn record_batch(
    database: &PostgresDatabase,
    unknown: &Mutex<Option<UnknownEnd>>,
    batch: &[Inference],
    prices: &Prices,
) -> DbResult<()> {
    if batch.is_empty() || was_recorded(database, unknown, batch)? {
        return Ok(());
    }
    let texts = clean_batch(batch);
    let entries: Vec<Entry<'_>> =
        by_start(&texts).into_iter().map(|inference| Entry::of(inference, prices)).collect();
    let sums = BatchSums::of(&entries);
    let mut number = None;
    let recorded = database.write(|transaction| {
        number = lock_days(transaction, &sums.day_locks)?;
        copy(transaction, &entries)?;
        sums.write(transaction)
    });
    if let (Err(_), Some(transaction)) = (&recorded, number) {
        *unknown.lock() = Some(UnknownEnd { batch: fingerprint(batch), transaction });
    }
    recorded
}

/// Whether an earlier attempt to record this batch succeeded.
fn was_recorded(
    database: &PostgresDatabase,
    unknown: &Mutex<Option<UnknownEnd>>,
    batch: &[Inference],
) -> DbResult<bool> {
    let mut unknown = unknown.lock();
    let Some(UnknownEnd { transaction: number, .. }) =
        unknown.as_ref().filter(|unknown| unknown.batch == fingerprint(batch))
    else {
        return Ok(false);
    };
    let Some(first) = batch.first() else { return Ok(true) };
    let (started, run) = (Moment::of(first.started).microseconds(), clean_name(&first.run));
    let recorded = database.write(|transaction| {
        match transaction.end_of_writer(number, RECORDED_CALL, &[&started, &run])? {
            TransactionEnd::Committed => Ok(true),
            TransactionEnd::InProgress => Err(QueryError::NoAnswer),
            TransactionEnd::NotCommitted => Ok(false),
        }
    })?;
    *unknown = None;
    Ok(recorded)
}

/// Recognises a batch that is recorded again.
pub(super) fn fingerprint(batch: &[Inference]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for inference in batch {
        let Inference { started, run, engine, model, latency, .. } = inference;
        (started, run, engine, model, latency).hash(&mut hasher);
    }
    hasher.finish()
}

/// The batch with names that PostgreSQL can store. Almost always the batch itself.
fn clean_batch(batch: &[Inference]) -> Cow<'_, [Inference]> {
    let has_nul = |inference: &Inference| {
        let ending = match &inference.ending {
            InferenceEnd::Failed(text) | InferenceEnd::Complete(FinishReason::Other(text)) => text.as_str(),
            InferenceEnd::Complete(_) | InferenceEnd::Cancelled => "",
        };
        let agent = inference.agent.as_deref().unwrap_or_default();
        let end_user = inference.end_user.as_deref().unwrap_or_default();
        [&*inference.run, &inference.engine, &inference.model, agent, end_user, ending]
            .into_iter()
            .any(|text| text.contains('\0'))
    };
    if !batch.iter().any(has_nul) {
        return Cow::Borrowed(batch);
    }
    let clean = |text: &String| clean_name(text).into_owned();
    let replaced = batch.iter().map(|inference| Inference {
        run: clean_name(&inference.run).into(),
        engine: clean(&inference.engine),
        model: clean(&inference.model),
        agent: inference.agent.as_ref().map(clean),
        end_user: inference.end_user.as_deref().map(|user| clean_name(user).into()),
        ending: match &inference.ending {
            InferenceEnd::Failed(text) => InferenceEnd::Failed(clean(text)),
            InferenceEnd::Complete(FinishReason::Other(text)) => {
                InferenceEnd::Complete(FinishReason::Other(clean(text)))
            }
            ending => ending.clone(),
        },
        ..inference.clone()
    });
    Cow::Owned(replaced.collect())
}

fn lock_days(transaction: &mut PostgresTransaction<'_>, locks: &[String]) -> QueryResult<Option<String>> {
    let row = transaction.query_opt(LOCK_DAYS, &[&locks])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Ids increase in the order of the entries.
fn copy(transaction: &mut PostgresTransaction<'_>, entries: &[Entry<'_>]) -> QueryResult<()> {
    struct Values {
        started: i64,
        outcome: &'static str,
        cost: Option<i64>,
    }
    let values: Vec<Values> = entries
        .iter()
        .map(|entry| Values {
            started: entry.started.microseconds(),
            outcome: entry.outcome.as_str(),
            cost: match entry.cost {
                Cost::Pico(pico) => Some(pico),
                Cost::Free | Cost::Unknown => None,
            },
        })
        .collect();
    let rows = entries.iter().zip(&values).map(|(entry, Values { started, outcome, cost })| {
        let Series { engine, model, agent, source, key } = &entry.series;
        let row: Vec<&(dyn ToSql + Sync)> = vec![
            started,
            &entry.run,
            source,
            engine,
            model,
            agent,
            &entry.streamed,
            &entry.prompt_tokens,
            &entry.completion_tokens,
            &entry.cached_tokens,
            &entry.estimated,
            &entry.latency_us,
            &entry.first_token_us,
            outcome,
            &entry.finish_reason,
            &entry.error,
            cost,
            &entry.energy_uj,
            key,
            &entry.end_user,
            &entry.request_id,
            &entry.route,
            &entry.host,
            &entry.queue_us,
        ];
        row
    });
    transaction.copy_in(COPY, &COPY_TYPES, rows).map(drop)
}

/// The sums of a batch, each in the order in which rows are locked.
struct BatchSums<'a> {
    day_locks: Vec<String>,
    series: BTreeMap<Series<'a>, [i64; 7]>,
    days: BTreeMap<(Series<'a>, i64), DaySum>,
    served: BTreeMap<i64, ServedSum>,
}

impl<'a> BatchSums<'a> {
    fn of(entries: &[Entry<'a>]) -> Self {
        let mut sums = Sums::default();
        for entry in entries {
            sums.add(entry.series, entry);
        }
        let days: BTreeSet<UtcDay> = sums.days.keys().map(|(day, _)| *day).collect();
        let mut series: BTreeMap<Series<'a>, [i64; 7]> = BTreeMap::new();
        for ((_, name), sum) in &sums.days {
            let more = [
                sum.calls,
                sum.calls - sum.failures,
                sum.prompt_tokens,
                sum.completion_tokens,
                sum.cost_pico,
                sum.energy_uj,
                sum.measured,
            ];
            for (total, more) in series.entry(*name).or_default().iter_mut().zip(more) {
                *total = total.saturating_add(more);
            }
        }
        BatchSums {
            day_locks: days.into_iter().map(day_lock).collect(),
            series,
            days: sums.days.into_iter().map(|((day, series), sum)| ((series, day.days()), sum)).collect(),
            served: sums.served.into_iter().collect(),
        }
    }

    fn write(&self, transaction: &mut PostgresTransaction<'_>) -> QueryResult<()> {
        let ids = self.add_to_series(transaction)?;
        let id_of = |series: &Series<'_>| {
            let Series { engine, model, agent, source, key } = *series;
            let id = ids.get(&[engine, model, agent, source, key].map(str::to_owned));
            id.copied().ok_or_else(|| QueryError::unreadable("id", "a series is missing"))
        };
        let mut rows = Vec::with_capacity(self.days.len());
        let mut durations = BTreeMap::new();
        for ((series, day), sum) in &self.days {
            let series = id_of(series)?;
            rows.push(day_row(*day, series, sum));
            if let Some(of_day) = &sum.durations {
                durations.insert((*day, series), of_day.clone());
            }
        }
        execute(transaction, ADD_TO_DAY, &columns(&rows))?;
        add_durations(transaction, durations)?;
        let served: Vec<[i64; 4]> = self
            .served
            .iter()
            .map(|(quarter, sum)| [*quarter, sum.calls, sum.prompt_tokens, sum.completion_tokens])
            .collect();
        execute(transaction, ADD_TO_SERVED, &columns(&served))
    }

    /// The id of each series by its names.
    fn add_to_series(
        &self,
        transaction: &mut PostgresTransaction<'_>,
    ) -> Result<HashMap<[String; 5], i64>, QueryError> {
        let names =
            |name: fn(&Series<'a>) -> &'a str| -> Vec<&'a str> { self.series.keys().map(name).collect() };
        let (engines, models) = (names(|series| series.engine), names(|series| series.model));
        let (agents, sources) = (names(|series| series.agent), names(|series| series.source));
        let keys = names(|series| series.key);
        let totals = columns(&self.series.values().copied().collect::<Vec<_>>());
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&engines, &models, &agents, &sources, &keys];
        parameters.extend(totals.iter().map(|column| column as &(dyn ToSql + Sync)));
        let read = |row: Row| {
            let names = [row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?, row.try_get(5)?];
            Ok((names, row.try_get(0)?))
        };
        transaction.query(ADD_TO_SERIES, &parameters)?.into_iter().map(read).collect()
    }
}

fn day_row(day: i64, series: i64, sum: &DaySum) -> [i64; 17] {
    [
        day,
        series,
        sum.calls,
        sum.failures,
        sum.cancelled,
        sum.estimated,
        sum.prompt_tokens,
        sum.completion_tokens,
        sum.cached_tokens,
        sum.latency_us,
        sum.first_token_us,
        sum.first_tokens,
        sum.cost_pico,
        sum.unpriced,
        sum.energy_uj,
        sum.measured,
        sum.completed_tokens,
    ]
}

/// The histograms are read and replaced. The locks of their series keep others from doing the same meanwhile.
fn add_durations(
    transaction: &mut PostgresTransaction<'_>,
    mut durations: BTreeMap<(i64, i64), Durations>,
) -> QueryResult<()> {
    if durations.is_empty() {
        return Ok(());
    }
    let (days, series): (Vec<i64>, Vec<i64>) = durations.keys().copied().unzip();
    for row in transaction.query(FIND_DURATIONS, &[&days, &series])? {
        if let Some(durations) = durations.get_mut(&(row.try_get(0)?, row.try_get(1)?)) {
            durations.latency.add_encoded(row.try_get(2)?);
            durations.first_token.add_encoded(row.try_get(3)?);
        }
    }
    let latency: Vec<Vec<u8>> = durations.values().map(|durations| durations.latency.encode()).collect();
    let first_token: Vec<Vec<u8>> =
        durations.values().map(|durations| durations.first_token.encode()).collect();
    transaction.execute(REPLACE_DURATIONS, &[&days, &series, &latency, &first_token]).map(drop)
}

/// Rows as columns, for `unnest`.
fn columns<const N: usize>(rows: &[[i64; N]]) -> [Vec<i64>; N] {
    std::array::from_fn(|column| rows.iter().map(|row| row[column]).collect())
}

fn execute(transaction: &mut PostgresTransaction<'_>, sql: &str, columns: &[Vec<i64>]) -> QueryResult<()> {
    let parameters: Vec<&(dyn ToSql + Sync)> =
        columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
    transaction.execute(sql, &parameters).map(drop)
}
