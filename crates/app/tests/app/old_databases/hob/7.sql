-- What the calls of a series add up to over all days, kept in the same transaction as the days' sums: what is asked of all time then
-- costs no more after years. `total_answered` are the calls that did not fail.
ALTER TABLE telemetry_series ADD COLUMN total_answered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_series ADD COLUMN total_prompt_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_series ADD COLUMN total_completion_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_series ADD COLUMN total_cost_pico INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_series ADD COLUMN total_energy_uj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_series ADD COLUMN total_measured INTEGER NOT NULL DEFAULT 0;

UPDATE telemetry_series SET
    total_answered = sums.answered, total_prompt_tokens = sums.prompt_tokens,
    total_completion_tokens = sums.completion_tokens, total_cost_pico = sums.cost_pico
FROM (
    SELECT
        series, sum(calls - failures) AS answered, sum(prompt_tokens) AS prompt_tokens,
        sum(completion_tokens) AS completion_tokens, sum(cost_pico) AS cost_pico
    FROM telemetry_day GROUP BY series
) AS sums
WHERE sums.series = telemetry_series.id;

-- What a Hob of this version wrote.
INSERT INTO telemetry_series (id, engine, model, agent, source, total_answered, total_prompt_tokens, total_completion_tokens, total_energy_uj, total_measured) VALUES (7, 'engine-7', 'model-7', '', 'ask', 1, 700, 70, 7000, 1);
INSERT INTO telemetry_inference (id, started, series, run, streamed, prompt_tokens, completion_tokens, cached_tokens, estimated, latency_us, first_token_us, outcome, finish_reason, error, cost_pico, energy_uj)
VALUES (7, 1700604800000000, 7, 'run-7', 1, 700, 70, NULL, 0, 2000000, 250000, 'complete', 'stop', NULL, NULL, 7000);
INSERT INTO telemetry_day (day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us, first_token_us, first_tokens, cost_pico, unpriced, energy_uj, measured)
VALUES (19682, 7, 1, 0, 0, 0, 700, 70, 0, 2000000, 250000, 1, 0, 0, 7000, 1);
INSERT INTO telemetry_latency (day, series, latency, first_token) VALUES (19682, 7, x'3b0101000000', x'0e0101000000');
INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (1889560, 1, 700, 70);

PRAGMA user_version = 7;
