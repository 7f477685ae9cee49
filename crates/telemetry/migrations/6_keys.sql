-- Calls by the key that pays: a series has one, and an empty text for calls without a key. In pages, an inference has whom it was for, in the
-- words of the client, after its error.
CREATE TABLE telemetry_series_with_key (
    id INTEGER PRIMARY KEY,
    engine TEXT NOT NULL,
    model TEXT NOT NULL,
    agent TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    total_answered INTEGER NOT NULL DEFAULT 0,
    total_prompt_tokens INTEGER NOT NULL DEFAULT 0,
    total_completion_tokens INTEGER NOT NULL DEFAULT 0,
    total_cost_pico INTEGER NOT NULL DEFAULT 0,
    total_energy_uj INTEGER NOT NULL DEFAULT 0,
    total_measured INTEGER NOT NULL DEFAULT 0,
    UNIQUE (engine, model, agent, source, key)
) STRICT;

INSERT INTO telemetry_series_with_key
SELECT
    id, engine, model, agent, source, '', total_answered, total_prompt_tokens, total_completion_tokens, total_cost_pico, total_energy_uj,
    total_measured
FROM telemetry_series;

DROP TABLE telemetry_series;
ALTER TABLE telemetry_series_with_key RENAME TO telemetry_series;
