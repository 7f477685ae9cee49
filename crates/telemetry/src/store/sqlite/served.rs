//! The input of the savings.

use hob_core::engine::CLOUD;
use hob_core::{Moment, RequestSource, UtcDay};
use rusqlite::{Connection, params};

use super::report::first_moment;
use super::rows::recent;
use super::timing::served_timings;
use crate::savings::{Dollars, MeasuredEnergy, Quarter, ServedModel, ServedTotals};
use crate::store::report::{SERVED_DAYS, SERVED_RECENT, dollars, energy};

pub(super) fn served(connection: &Connection, today: UtcDay) -> rusqlite::Result<ServedTotals> {
    let timings = served_timings(connection, today.minus(SERVED_DAYS - 1))?;
    let mut models = local_models(connection)?;
    for model in &mut models {
        let name = (model.model.clone(), model.engine.clone());
        model.timings = timings.by_model.get(&name).copied().unwrap_or_default();
    }
    let Spent { cloud_cost, energy } = spent(connection)?;
    Ok(ServedTotals {
        since: first_moment(connection)?,
        models,
        timings: timings.together,
        // One day more than the chart, because days in other zones begin up to a day earlier.
        quarters: quarters(connection, today.minus(SERVED_DAYS))?,
        cloud_cost,
        energy,
        recent: recent(connection, SERVED_RECENT)?,
    })
}

/// Local models, most tokens first.
fn local_models(connection: &Connection) -> rusqlite::Result<Vec<ServedModel>> {
    let mut statement = connection.prepare_cached(
        "SELECT model, engine, sum(total_answered), sum(total_prompt_tokens), sum(total_completion_tokens)
         FROM telemetry_series WHERE engine <> ?1 AND source <> ?2
         GROUP BY model, engine HAVING sum(total_answered) > 0
         ORDER BY sum(total_prompt_tokens) + sum(total_completion_tokens) DESC, model, engine",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(ServedModel {
            model: row.get(0)?,
            engine: row.get(1)?,
            calls: count(2)?,
            prompt_tokens: count(3)?,
            completion_tokens: count(4)?,
            ..ServedModel::default()
        })
    };
    statement.query_map(params![CLOUD, RequestSource::Bench.as_str()], read)?.collect()
}

/// The quarters of an hour with answers since a day.
fn quarters(connection: &Connection, since: UtcDay) -> rusqlite::Result<Vec<Quarter>> {
    let mut statement = connection.prepare_cached(
        "SELECT quarter, calls, prompt_tokens, completion_tokens FROM telemetry_served
         WHERE quarter >= ?1 ORDER BY quarter",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(Quarter {
            start: Moment::of_quarter(row.get(0)?),
            calls: count(1)?,
            prompt_tokens: count(2)?,
            completion_tokens: count(3)?,
        })
    };
    statement.query_map([since.start().quarter()], read)?.collect()
}

/// The cost of calls in money and energy.
struct Spent {
    cloud_cost: Dollars,
    energy: Option<MeasuredEnergy>,
}

/// Includes `bench`, which also costs money.
fn spent(connection: &Connection) -> rusqlite::Result<Spent> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(sum(total_cost_pico / 1000000), 0), coalesce(sum(total_cost_pico % 1000000), 0),
             total(total_energy_uj), coalesce(sum(total_measured), 0)
         FROM telemetry_series",
    )?;
    statement.query_row([], |row| {
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let calls = count(3)?;
        let energy = energy(row.get(2)?, calls).map(|energy| MeasuredEnergy { energy, calls });
        Ok(Spent { cloud_cost: dollars(count(0)?, count(1)?), energy })
    })
}
