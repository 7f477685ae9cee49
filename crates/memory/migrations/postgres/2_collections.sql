-- The collections that a source is in. What was indexed before there were collections is the owner's. An older Hob adds sources to no
-- collection: a search of all collections finds them, and the next indexing adds them to its own.
CREATE TABLE memory_collection (
    name TEXT COLLATE "C" NOT NULL,
    source BIGINT NOT NULL REFERENCES memory_source (id) ON DELETE CASCADE,
    PRIMARY KEY (name, source)
);

CREATE INDEX memory_collection_source ON memory_collection (source);

INSERT INTO memory_collection (name, source) SELECT 'default', id FROM memory_source;
