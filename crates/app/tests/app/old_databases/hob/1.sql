-- Telemetry. Times are microseconds, `started` and `day` count from 1970 in UTC, `cost_pico` is in millionths of a millionth
-- of a dollar. `telemetry_day` and `telemetry_latency` are sums over `telemetry_inference`, kept in the same transaction; the
-- latter has histograms, apart from the other sums because most reports can do without. `telemetry_served` sums what savings
-- count by the quarter of an hour: days begin at such a quarter in every time zone.
CREATE TABLE telemetry_series (
    id INTEGER PRIMARY KEY,
    engine TEXT NOT NULL,
    model TEXT NOT NULL,
    agent TEXT NOT NULL,
    source TEXT NOT NULL,
    UNIQUE (engine, model, agent, source)
) STRICT;

CREATE TABLE telemetry_inference (
    id INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,
    series INTEGER NOT NULL,
    run TEXT NOT NULL,
    streamed INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER,
    estimated INTEGER NOT NULL,
    latency_us INTEGER NOT NULL,
    first_token_us INTEGER,
    outcome TEXT NOT NULL,
    finish_reason TEXT,
    error TEXT,
    cost_pico INTEGER
) STRICT;

CREATE INDEX telemetry_inference_started ON telemetry_inference (started);

CREATE TABLE telemetry_day (
    day INTEGER NOT NULL,
    series INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    latency_us INTEGER NOT NULL,
    first_token_us INTEGER NOT NULL,
    first_tokens INTEGER NOT NULL,
    cost_pico INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE telemetry_latency (
    day INTEGER NOT NULL,
    series INTEGER NOT NULL,
    latency BLOB NOT NULL,
    first_token BLOB NOT NULL,
    PRIMARY KEY (day, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE telemetry_served (
    quarter INTEGER PRIMARY KEY,
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL
) STRICT;

-- What a Hob of this version wrote.
INSERT INTO telemetry_series (id, engine, model, agent, source) VALUES (1, 'engine-1', 'model-1', '', 'ask');
INSERT INTO telemetry_inference (id, started, series, run, streamed, prompt_tokens, completion_tokens, cached_tokens, estimated, latency_us, first_token_us, outcome, finish_reason, error, cost_pico)
VALUES (1, 1700086400000000, 1, 'run-1', 1, 100, 10, NULL, 0, 2000000, 250000, 'complete', 'stop', NULL, NULL);
INSERT INTO telemetry_day (day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us, first_token_us, first_tokens, cost_pico, unpriced)
VALUES (19676, 1, 1, 0, 0, 0, 100, 10, 0, 2000000, 250000, 1, 0, 0);
INSERT INTO telemetry_latency (day, series, latency, first_token) VALUES (19676, 1, x'3b0101000000', x'0e0101000000');
INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (1888984, 1, 100, 10);

PRAGMA user_version = 1;
