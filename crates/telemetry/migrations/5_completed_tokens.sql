-- The part of `completion_tokens` that is of completed calls, whose time `latency_us` is: one by the other is how fast a model writes.
-- NULL where it is not known, and so it stays for that day.
ALTER TABLE telemetry_day ADD COLUMN completed_tokens INTEGER;

UPDATE telemetry_day SET completed_tokens = completion_tokens WHERE cancelled = 0;
