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
