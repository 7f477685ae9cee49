-- What calls used of this machine's energy, in microjoules, where it was measured. `measured` counts the calls of a day of which
-- `energy_uj` is the sum.
ALTER TABLE telemetry_inference ADD COLUMN energy_uj INTEGER;
ALTER TABLE telemetry_day ADD COLUMN energy_uj INTEGER NOT NULL DEFAULT 0;
ALTER TABLE telemetry_day ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;

-- What a Hob of this version wrote.
INSERT INTO telemetry_series (id, engine, model, agent, source) VALUES (6, 'engine-6', 'model-6', '', 'ask');
INSERT INTO telemetry_inference (id, started, series, run, streamed, prompt_tokens, completion_tokens, cached_tokens, estimated, latency_us, first_token_us, outcome, finish_reason, error, cost_pico, energy_uj)
VALUES (6, 1700518400000000, 6, 'run-6', 1, 600, 60, NULL, 0, 2000000, 250000, 'complete', 'stop', NULL, NULL, 5000);
INSERT INTO telemetry_day (day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us, first_token_us, first_tokens, cost_pico, unpriced, energy_uj, measured)
VALUES (19681, 6, 1, 0, 0, 0, 600, 60, 0, 2000000, 250000, 1, 0, 0, 5000, 1);
INSERT INTO telemetry_latency (day, series, latency, first_token) VALUES (19681, 6, x'3b0101000000', x'0e0101000000');
INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (1889464, 1, 600, 60);

PRAGMA user_version = 6;
