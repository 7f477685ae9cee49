-- Named API keys. Times are microseconds since 1970 in UTC. `hash` is the SHA-256 of the secret, `previous_hash` that of the secret before
-- the last rotation, which is valid until `previous_until`. `rules` is JSON: what the key may use, and how much.
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    rules TEXT NOT NULL,
    hash BLOB NOT NULL,
    previous_hash BLOB,
    previous_until INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;

-- What servers have taken of a limit in one window of time, which begins at `begins_at`, in seconds since 1970. A server takes a share before
-- it spends it, so a crash never lets a key spend more. `key` is the id of a key, or `identity:NAME` for an identity from outside, which has
-- no row in `api_key`.
CREATE TABLE api_key_quota (
    key TEXT NOT NULL,
    quota TEXT NOT NULL,
    begins_at INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (key, quota, begins_at)
) STRICT, WITHOUT ROWID;

-- Counts the changes of keys, so that a server reads the keys only after a change.
CREATE TABLE api_key_changes (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;

INSERT INTO api_key_changes (id, count) VALUES (1, 0);
