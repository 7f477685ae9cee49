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

-- What a Hob of this version wrote.
INSERT INTO telemetry_series (id, engine, model, agent, source, total_answered, total_prompt_tokens, total_completion_tokens, total_energy_uj, total_measured) VALUES (8, 'engine-8', 'model-8', '', 'ask', 1, 800, 80, 8000, 1);
INSERT INTO telemetry_page (first_started, last_started, count, inferences)
VALUES (1700691200000000, 1700691200000000, 1, '[[1700691200000000,8,"run-8",1,800,80,0,2000000,"complete",250000,"stop",null,null,8000]]');
INSERT INTO telemetry_day (day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us, first_token_us, first_tokens, cost_pico, unpriced, energy_uj, measured)
VALUES (19683, 8, 1, 0, 0, 0, 800, 80, 0, 2000000, 250000, 1, 0, 0, 8000, 1);
INSERT INTO telemetry_latency (day, series, latency, first_token) VALUES (19683, 8, x'3b0101000000', x'0e0101000000');
INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (1889656, 1, 800, 80);

PRAGMA user_version = 8;
