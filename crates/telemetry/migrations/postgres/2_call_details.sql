-- Where a call came from, and where it went. All are NULL for earlier calls. `request_id` is what the client and the log call the request, `route`
-- the path of the API, `host` the address among several of an engine, and `queue_us` the wait for one of the server's slots.
ALTER TABLE telemetry_call
    ADD COLUMN request_id TEXT,
    ADD COLUMN route TEXT,
    ADD COLUMN host TEXT,
    ADD COLUMN queue_us BIGINT;
