-- The part of `completion_tokens` that is of completed calls, whose time `latency_us` is: one by the other is how fast a model writes.
-- NULL where it is not known, and so it stays for that day.
ALTER TABLE telemetry_day ADD COLUMN completed_tokens INTEGER;

UPDATE telemetry_day SET completed_tokens = completion_tokens WHERE cancelled = 0;

-- What a Hob of this version wrote.
INSERT INTO telemetry_series (id, engine, model, agent, source, total_answered, total_prompt_tokens, total_completion_tokens, total_energy_uj, total_measured) VALUES (10, 'engine-10', 'model-10', '', 'ask', 1, 1000, 100, 0, 0);
INSERT INTO telemetry_page (first_started, last_started, count, inferences)
VALUES (1700864000000000, 1700864000000000, 1, '[[1700864000000000,10,"run-10",1,1000,100,0,2000000,"complete",250000,"stop"]]');
INSERT INTO telemetry_day (day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us, first_token_us, first_tokens, cost_pico, unpriced, completed_tokens)
VALUES (19685, 10, 1, 0, 0, 0, 1000, 100, 0, 2000000, 250000, 1, 0, 0, 100);
INSERT INTO telemetry_latency (day, series, latency, first_token) VALUES (19685, 10, x'3b0101000000', x'0e0101000000');
INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (1889848, 1, 1000, 100);

PRAGMA user_version = 10;
