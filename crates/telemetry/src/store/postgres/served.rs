//! The input of the savings.

use hob_core::engine::CLOUD;
use hob_core::{Moment, RequestSource, UtcDay};
use hob_db::postgres::{PostgresTransaction, QueryResult, Row, clean_name};

use super::calls::{first_moment, recent};
use super::report::{count, served_timings};
use crate::savings::{Dollars, MeasuredEnergy, Quarter, ServedModel, ServedTotals};
use crate::store::report::{SERVED_DAYS, SERVED_RECENT, dollars, energy};

pub(super) fn served(transaction: &mut PostgresTransaction<'_>, today: UtcDay) -> QueryResult<ServedTotals> {
    let timings = served_timings(transaction, today.minus(SERVED_DAYS - 1))?;
    let mut models = local_models(transaction)?;
    for model in &mut models {
        let name = (model.model.clone(), model.engine.clone());
        model.timings = timings.by_model.get(&name).copied().unwrap_or_default();
    }
    let (cloud_cost, energy) = spent(transaction)?;
    Ok(ServedTotals {
        since: first_moment(transaction)?,
        models,
        timings: timings.together,
        // One day more than the chart, because days in other zones begin up to a day earlier.
        quarters: quarters(transaction, today.minus(SERVED_DAYS))?,
        cloud_cost,
        energy,
        recent: recent(transaction, SERVED_RECENT)?,
    })
}

pub(super) fn has_answered(transaction: &mut PostgresTransaction<'_>, engine: &str) -> QueryResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM telemetry_series WHERE engine = $1 AND total_answered > 0)";
    Ok(transaction.query_one(sql, &[&clean_name(engine)])?.try_get(0)?)
}

/// Local models, most tokens first.
fn local_models(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Vec<ServedModel>> {
    let sql = "SELECT model, engine, sum(total_answered)::bigint, sum(total_prompt_tokens)::bigint,
             sum(total_completion_tokens)::bigint
         FROM telemetry_series WHERE engine <> $1 AND source <> $2
         GROUP BY model, engine HAVING sum(total_answered) > 0
         ORDER BY sum(total_prompt_tokens) + sum(total_completion_tokens) DESC, model, engine";
    let read = |row: &Row| {
        Ok(ServedModel {
            model: row.try_get(0)?,
            engine: row.try_get(1)?,
            calls: count(row, 2)?,
            prompt_tokens: count(row, 3)?,
            completion_tokens: count(row, 4)?,
            ..ServedModel::default()
        })
    };
    transaction.query(sql, &[&CLOUD, &RequestSource::Bench.as_str()])?.iter().map(read).collect()
}

/// The quarters of an hour with answers since a day.
fn quarters(transaction: &mut PostgresTransaction<'_>, since: UtcDay) -> QueryResult<Vec<Quarter>> {
    let sql = "SELECT quarter, calls, prompt_tokens, completion_tokens FROM telemetry_served
         WHERE quarter >= $1 ORDER BY quarter";
    let read = |row: &Row| {
        Ok(Quarter {
            start: Moment::of_quarter(row.try_get(0)?),
            calls: count(row, 1)?,
            prompt_tokens: count(row, 2)?,
            completion_tokens: count(row, 3)?,
        })
    };
    transaction.query(sql, &[&since.start().quarter()])?.iter().map(read).collect()
}

/// The cost of calls in money and energy. Includes `bench`, which also costs money.
fn spent(transaction: &mut PostgresTransaction<'_>) -> QueryResult<(Dollars, Option<MeasuredEnergy>)> {
    let sql =
        "SELECT coalesce(sum(total_cost_pico / 1000000), 0)::bigint, coalesce(sum(total_cost_pico % 1000000), 0)::bigint,
             coalesce(sum(total_energy_uj), 0)::float8, coalesce(sum(total_measured), 0)::bigint
         FROM telemetry_series";
    let row = transaction.query_one(sql, &[])?;
    let calls = count(&row, 3)?;
    let energy = energy(row.try_get(2)?, calls).map(|energy| MeasuredEnergy { energy, calls });
    Ok((dollars(count(&row, 0)?, count(&row, 1)?), energy))
}
