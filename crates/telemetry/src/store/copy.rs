//! The tables, for a copy between databases. SQLite packs calls in pages, PostgreSQL has a row for each.

use hob_db::copy::{CopyTable, SqliteForm};

/// The totals of a series, and the sums of days, are copied as they are: calls of days without sums would change them.
pub const COPY_TABLES: &[CopyTable] = &[
    CopyTable {
        sqlite: Some(SqliteForm {
            table: "telemetry_series",
            rows: "(SELECT *, (
                    SELECT coalesce(sum(calls), 0) FROM telemetry_day WHERE telemetry_day.series = telemetry_series.id
                ) AS total_calls FROM telemetry_series)",
            key: &["id"],
            columns: None,
            insert: "
                INSERT INTO telemetry_series (
                    id, engine, model, agent, source, key, total_answered, total_prompt_tokens,
                    total_completion_tokens, total_cost_pico, total_energy_uj, total_measured
                ) SELECT
                    id, engine, model, agent, source, key, total_answered, total_prompt_tokens,
                    total_completion_tokens, total_cost_pico, total_energy_uj, total_measured
                FROM copied",
            conversion: None,
        }),
        // SQLite counts them from the days, which are copied later.
        not_compared: &["total_calls"],
        ..CopyTable::new("telemetry_series", &["id"])
    },
    CopyTable::new("telemetry_day", &["day", "series"]),
    CopyTable::new("telemetry_latency", &["day", "series"]),
    CopyTable::new("telemetry_served", &["quarter"]),
    CopyTable {
        server_columns: &["id"],
        sqlite: Some(SqliteForm {
            table: "telemetry_page",
            // The joins keep their order: pages, their calls, and the names of each.
            rows: "(SELECT
                    page.id AS page, call.key AS place, call.value ->> 0 AS started, series.source, series.engine, series.model,
                    series.agent, call.value ->> 2 AS run, call.value ->> 3 AS streamed, call.value ->> 4 AS prompt_tokens,
                    call.value ->> 5 AS completion_tokens, call.value ->> 6 AS estimated, call.value ->> 7 AS latency_us,
                    call.value ->> 8 AS outcome, call.value ->> 9 AS first_token_us, call.value ->> 10 AS finish_reason,
                    call.value ->> 11 AS cached_tokens, call.value ->> 12 AS cost_pico, call.value ->> 13 AS energy_uj,
                    call.value ->> 14 AS error, series.key, call.value ->> 15 AS end_user,
                    call.value ->> 16 AS request_id, call.value ->> 17 AS route, call.value ->> 18 AS host,
                    call.value ->> 19 AS queue_us
                FROM telemetry_page AS page CROSS JOIN json_each(page.inferences) AS call
                    CROSS JOIN telemetry_series AS series ON series.id = call.value ->> 1)",
            key: &["page", "place"],
            columns: None,
            insert: "
                INSERT INTO telemetry_page (first_started, last_started, count, inferences)
                SELECT min(started), max(started), count(*), '[' || group_concat(inference, ',' ORDER BY started, place) || ']'
                FROM (
                    SELECT
                        started, started / 86400000000 AS day, copied.rowid AS place,
                        json_array(
                            started, series.id, run, streamed, prompt_tokens, completion_tokens, estimated, latency_us, outcome,
                            first_token_us, finish_reason, cached_tokens, cost_pico, energy_uj, error, end_user, request_id,
                            route, host, queue_us
                        ) AS inference
                    FROM copied JOIN telemetry_series AS series USING (engine, model, agent, source, key)
                )
                GROUP BY day ORDER BY day",
            conversion: None,
        }),
        ..CopyTable::new("telemetry_call", &["id"])
    },
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hob_core::{FinishReason, UtcDay};
    use hob_db::Database;
    use hob_db::copy::{CopyRequest, ExistingRows, copy_to_postgres, copy_to_sqlite};
    use hob_testkit::PostgresServer;

    use super::*;
    use crate::inference::{CallDetails, Energy, Inference, InferenceEnd};
    use crate::savings::Prices;
    use crate::store::tests::{DAY, connect, inference, noon, rows};
    use crate::store::{MIGRATIONS, PostgresTelemetryStore, SqliteTelemetryStore, TelemetryStore};

    /// All that reports say.
    fn figures(store: &Arc<dyn TelemetryStore>) -> String {
        let today = UtcDay::of(noon());
        let mut calls = rows(store);
        calls.sort_by(|one, other| (one.started, &one.run).cmp(&(other.started, &other.run)));
        format!(
            "{calls:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            store.overview(None),
            store.top_models(None, 10),
            store.engines(None),
            store.agents(None),
            store.per_day(14, noon()),
            store.speeds(today.minus(14), 10),
            store.served(today),
        )
    }

    fn calls() -> Vec<Inference> {
        let other = |number: u32, ending| Inference {
            started: noon() - DAY * (number % 4) + Duration::from_micros(number.into()),
            run: format!("run-{number}").into(),
            model: format!("model-{}", number % 3),
            agent: number.is_multiple_of(2).then(|| "react".to_owned()),
            estimated: number.is_multiple_of(5),
            energy: number.is_multiple_of(7).then(|| Energy::from_microjoules(number.into())),
            first_token: None,
            ending,
            details: CallDetails {
                request_id: number.is_multiple_of(3).then(|| format!("req-{number}").into()),
                route: number.is_multiple_of(3).then_some("/v1/messages"),
                host: number.is_multiple_of(9).then(|| "http://10.0.0.1:8000".into()),
                queued: number.is_multiple_of(11).then_some(Duration::from_micros(7)),
            },
            ..inference()
        };
        (0..3_000)
            .map(|number| match number % 4 {
                0 => inference(),
                1 => other(number, InferenceEnd::Cancelled),
                2 => other(number, InferenceEnd::Failed(format!("\"{number}\" \\ \u{1}\nü"))),
                _ => other(number, InferenceEnd::Complete(FinishReason::Other("rest".to_owned()))),
            })
            .collect()
    }

    #[test]
    fn reports_are_the_same_after_a_copy_to_postgresql_and_back() {
        let file = |database: &Database| -> Arc<dyn TelemetryStore> {
            Arc::new(SqliteTelemetryStore::new(database.clone()))
        };
        let source = Database::in_memory(&[MIGRATIONS]).expect("opened");
        file(&source).record_batch(&calls(), &Prices::standard()).expect("recorded");
        let expected = figures(&file(&source));

        let created = PostgresServer::shared().create_database();
        let server = connect(&created);
        let request = CopyRequest {
            tables: COPY_TABLES,
            source: "here",
            existing: ExistingRows::Continue,
            listener: &|_| {},
        };
        copy_to_postgres(&source, &server, &request).expect("copied");
        let store: Arc<dyn TelemetryStore> = Arc::new(PostgresTelemetryStore::new(server.clone()));
        assert_eq!(figures(&store), expected);

        let back = Database::in_memory(&[MIGRATIONS]).expect("opened");
        copy_to_sqlite(&server, &back, &request).expect("copied");
        assert_eq!(figures(&file(&back)), expected);
        // What is recorded next adds up.
        for store in [&store, &file(&back)] {
            store.record_batch(&calls(), &Prices::standard()).expect("recorded");
            assert_eq!(store.overview(None).expect("read").figures.calls, 6_000);
        }
    }
}
