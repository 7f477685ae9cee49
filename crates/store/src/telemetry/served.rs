//! What savings are computed from.

use hob_core::Source;
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::savings::{Dollars, Savings, Served, ServedModel, savings};
use crate::telemetry::report::{dollars, first_moment};
use crate::telemetry::{CLOUD, Telemetry};

/// How many of the last calls go with the savings.
const RECENT: usize = 10;

impl Telemetry {
    /// What local answers have saved so far.
    pub fn savings(&self) -> Result<Savings, StoreError> {
        let recent = self.recent(RECENT)?;
        let served = self.store.read(|connection| {
            Ok(Served {
                since: first_moment(connection)?,
                models: local_models(connection)?,
                cloud_cost: cloud_cost(connection)?,
                recent,
            })
        })?;
        Ok(savings(served, &self.prices))
    }
}

/// Models on local engines, those with the most tokens first.
fn local_models(connection: &Connection) -> rusqlite::Result<Vec<ServedModel>> {
    let mut statement = connection.prepare_cached(
        "SELECT model, engine, sum(calls - failures), sum(prompt_tokens), sum(completion_tokens)
         FROM telemetry_day JOIN telemetry_series ON id = series
         WHERE engine <> ?1 AND source <> ?2
         GROUP BY model, engine HAVING sum(calls - failures) > 0
         ORDER BY sum(prompt_tokens) + sum(completion_tokens) DESC, model, engine",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(ServedModel {
            model: row.get(0)?,
            engine: row.get(1)?,
            calls: count(2)?,
            prompt_tokens: count(3)?,
            completion_tokens: count(4)?,
        })
    };
    statement.query_map(params![CLOUD, Source::Bench.as_str()], read)?.collect()
}

/// Whatever a call was for, it was paid for: `bench` counts here.
fn cloud_cost(connection: &Connection) -> rusqlite::Result<Dollars> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(sum(cost_pico / 1000000), 0), coalesce(sum(cost_pico % 1000000), 0) FROM telemetry_day",
    )?;
    statement.query_row([], |row| {
        Ok(dollars(row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs()))
    })
}
