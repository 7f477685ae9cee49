-- Files that indexing did not add, and why. Each run replaces the rows of its collection at and below its path.
CREATE TABLE memory_skipped (
    collection TEXT NOT NULL,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- Microseconds since 1970.
    seen INTEGER NOT NULL,
    PRIMARY KEY (collection, path)
) STRICT, WITHOUT ROWID;

-- Directories of the server's machine that the owner added. Times are microseconds since 1970.
CREATE TABLE memory_folder (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    collection TEXT NOT NULL,
    -- Whether servers index its changes.
    watched INTEGER NOT NULL,
    added INTEGER NOT NULL,
    -- The end of the last run, and what went wrong in it.
    checked INTEGER,
    fault TEXT,
    -- When a server may index it next. A server that indexes it moves this forward, so that others do not.
    due INTEGER NOT NULL,
    UNIQUE (path, collection)
) STRICT;
