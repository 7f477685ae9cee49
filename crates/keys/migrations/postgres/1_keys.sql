-- Named API keys. The columns mean the same as in SQLite: times are microseconds since 1970 in UTC, `rules` is JSON.
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    rules TEXT NOT NULL,
    hash BYTEA NOT NULL,
    previous_hash BYTEA,
    previous_until BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

-- What servers have taken of a limit in one window of time, which begins at `begins_at`, in seconds since 1970. `key` is the id of a key, or
-- `identity:NAME` for an identity from outside, which has no row in `api_key`.
CREATE TABLE api_key_quota (
    key TEXT NOT NULL,
    quota TEXT NOT NULL,
    begins_at BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    PRIMARY KEY (key, quota, begins_at)
);

-- Counts the changes of keys, so that a server reads the keys only after a change. A sequence would not do: it counts before the
-- change is committed.
CREATE TABLE api_key_changes (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    count BIGINT NOT NULL
);

INSERT INTO api_key_changes (id, count) VALUES (1, 0);

-- Every change of keys, models, tasks and settings, in order. `hash` is the SHA-256 of the entry with the hash of the one before it.
CREATE TABLE audit_entry (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);

CREATE FUNCTION audit_entry_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of the audit log are never changed or deleted';
END
$$;

CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_refuse();
