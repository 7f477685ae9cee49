-- The collections that a source is in. What was indexed before there were collections is the owner's.
CREATE TABLE memory_collection (
    name TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES memory_source (id) ON DELETE CASCADE,
    PRIMARY KEY (name, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_collection_source ON memory_collection (source);

INSERT INTO memory_collection (name, source) SELECT 'default', id FROM memory_source;
