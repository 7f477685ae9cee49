-- Inferences in pages instead of a row each, which makes recording one a fraction of the work. A page holds up to 2,048 of one UTC day in
-- the order in which they began, as a JSON array of arrays: started, series, run, streamed, prompt_tokens, completion_tokens, estimated,
-- latency_us, outcome, first_token_us, finish_reason, cached_tokens, cost_pico, energy_uj, error; nulls at the end may be left out.
-- `first_started` and `last_started` are those of its first and its last, `count` is how many there are.
CREATE TABLE telemetry_page (
    id INTEGER PRIMARY KEY,
    first_started INTEGER NOT NULL,
    last_started INTEGER NOT NULL,
    count INTEGER NOT NULL,
    inferences TEXT NOT NULL
) STRICT;

CREATE INDEX telemetry_page_first ON telemetry_page (first_started);
CREATE INDEX telemetry_page_last ON telemetry_page (last_started);

INSERT INTO telemetry_page (first_started, last_started, count, inferences)
SELECT min(started), max(started), count(*), '[' || group_concat(inference, ',' ORDER BY started, id) || ']'
FROM (
    SELECT
        id, started, started / 86400000000 AS day,
        (row_number() OVER (PARTITION BY started / 86400000000 ORDER BY started, id) - 1) / 512 AS portion,
        json_array(
            started, series, run, streamed, prompt_tokens, completion_tokens, estimated, latency_us, outcome, first_token_us,
            finish_reason, cached_tokens, cost_pico, energy_uj, error
        ) AS inference
    FROM telemetry_inference
)
GROUP BY day, portion ORDER BY day, portion;

DROP TABLE telemetry_inference;
