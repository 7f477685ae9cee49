-- Files that indexing did not add, and why. Each run replaces the rows of its collection at and below its path.
CREATE TABLE memory_skipped (
    collection TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    reason TEXT NOT NULL,
    -- Microseconds since 1970.
    seen BIGINT NOT NULL,
    PRIMARY KEY (collection, path)
);

-- Directories of the servers' machines that the owner added. Times are microseconds since 1970.
CREATE TABLE memory_folder (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path TEXT COLLATE "C" NOT NULL,
    collection TEXT COLLATE "C" NOT NULL,
    -- Whether servers index its changes.
    watched BOOLEAN NOT NULL,
    added BIGINT NOT NULL,
    -- The end of the last run, and what went wrong in it.
    checked BIGINT,
    fault TEXT,
    -- When a server may index it next. A server that indexes it moves this forward, so that others do not.
    due BIGINT NOT NULL,
    UNIQUE (path, collection)
);
