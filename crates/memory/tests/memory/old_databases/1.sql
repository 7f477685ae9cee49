-- What is known of the user's documents: sources, the chunks they were cut into, and the three ways to a chunk.

-- A file, or a note that somebody had remembered.
CREATE TABLE memory_source (
    id INTEGER PRIMARY KEY,
    -- Absolute; 'note:...' for a note.
    path TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    -- What the numbers of its chunks count: line, page or paragraph.
    place TEXT NOT NULL,
    hash BLOB NOT NULL,
    -- Nanoseconds since 1970, as the file system has it.
    modified INTEGER NOT NULL,
    size INTEGER NOT NULL,
    -- How it was cut: another size of chunks makes an unchanged file worth another look.
    recipe TEXT NOT NULL,
    -- Microseconds since 1970.
    indexed INTEGER NOT NULL,
    -- Sums over its chunks, so that nobody has to read these to report on them.
    chunks INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

CREATE TABLE memory_chunk (
    -- Never given twice: readers remember ids.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES memory_source (id),
    position INTEGER NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

CREATE INDEX memory_chunk_source ON memory_chunk (source, position);

-- By words.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    title, text,
    content = 'memory_chunk', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Words are collected in so many bytes of memory before they are written: fewer pieces are merged more quickly.
INSERT INTO memory_words (memory_words, rank) VALUES ('hashsize', 16777216);

-- One chunk in 64, to learn at little cost how common a word is.
CREATE VIRTUAL TABLE memory_sample USING fts5 (
    title, text,
    content = '', contentless_delete = 1, detail = 'full',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE memory_model (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    dimensions INTEGER NOT NULL
) STRICT;

-- By meaning: a vector of length 1 in whole numbers; times 'scale' it is itself again.
CREATE TABLE memory_vector (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk INTEGER NOT NULL UNIQUE REFERENCES memory_chunk (id),
    model INTEGER NOT NULL REFERENCES memory_model (id),
    scale REAL NOT NULL,
    vector BLOB NOT NULL
) STRICT;

-- The signs of a vector's numbers, a bit each. Apart from the vectors, so that all of them are read quickly.
CREATE TABLE memory_code (
    id INTEGER PRIMARY KEY REFERENCES memory_vector (id),
    model INTEGER NOT NULL,
    code BLOB NOT NULL
) STRICT;

CREATE TRIGGER memory_chunk_comes AFTER INSERT ON memory_chunk BEGIN
    INSERT INTO memory_words (rowid, title, text) VALUES (new.id, new.title, new.text);
END;

CREATE TRIGGER memory_chunk_comes_to_the_sample AFTER INSERT ON memory_chunk WHEN new.id % 64 = 0 BEGIN
    INSERT INTO memory_sample (rowid, title, text) VALUES (new.id, new.title, new.text);
END;

CREATE TRIGGER memory_chunk_goes BEFORE DELETE ON memory_chunk BEGIN
    INSERT INTO memory_words (memory_words, rowid, title, text) VALUES ('delete', old.id, old.title, old.text);
    DELETE FROM memory_vector WHERE chunk = old.id;
END;

CREATE TRIGGER memory_chunk_goes_from_the_sample BEFORE DELETE ON memory_chunk WHEN old.id % 64 = 0 BEGIN
    DELETE FROM memory_sample WHERE rowid = old.id;
END;

CREATE TRIGGER memory_vector_goes BEFORE DELETE ON memory_vector BEGIN
    DELETE FROM memory_code WHERE id = old.id;
END;

-- What a Hob of this version wrote.
INSERT INTO memory_source (id, path, title, place, hash, modified, size, recipe, indexed, chunks, tokens)
VALUES (1, '/documents/1.md', 'Document 1', 'line', zeroblob(32), 7, 11, '512/64', 1700000000000001, 1, 3);
INSERT INTO memory_chunk (id, source, position, title, text, line, end_line, tokens)
VALUES (64, 1, 0, 'Boilers', 'Service number 1 every autumn', 1, 2, 3);
INSERT INTO memory_model (id, name, dimensions) VALUES (1, 'embedder', 4);
INSERT INTO memory_vector (id, chunk, model, scale, vector) VALUES (1, 64, 1, 0.007874015748031496, x'7f000000');
INSERT INTO memory_code (id, model, code) VALUES (1, 1, x'0100000000000000');

PRAGMA user_version = 1;
