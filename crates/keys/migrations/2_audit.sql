-- Every change of keys, models, tasks and settings, in order. `at` is in microseconds since 1970 in UTC, `detail` is JSON. `hash` is the SHA-256
-- of the entry with the hash of the one before it, so that an entry cannot be changed or removed unnoticed.
CREATE TABLE audit_entry (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are never changed');
END;

CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are never deleted');
END;
