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
