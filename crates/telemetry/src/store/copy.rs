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
                    id, engine, model, agent, source, total_answered, total_prompt_tokens, total_completion_tokens,
                    total_cost_pico, total_energy_uj, total_measured
                ) SELECT
                    id, engine, model, agent, source, total_answered, total_prompt_tokens, total_completion_tokens,
                    total_cost_pico, total_energy_uj, total_measured
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
                    call.value ->> 14 AS error
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
                            first_token_us, finish_reason, cached_tokens, cost_pico, energy_uj, error
                        ) AS inference
                    FROM copied JOIN telemetry_series AS series USING (engine, model, agent, source)
                )
                GROUP BY day ORDER BY day",
            conversion: None,
        }),
        ..CopyTable::new("telemetry_call", &["id"])
    },
];
