-- Vectors that are gone, in the order in which they went. Whoever holds codes in memory reads from here what to drop. Only the last
-- of them are kept; who has missed more reads all codes again.
CREATE TABLE memory_vector_gone (
    -- Never given twice: readers remember how far they have read.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    vector INTEGER NOT NULL
) STRICT;

DROP TRIGGER memory_vector_goes;

CREATE TRIGGER memory_vector_goes BEFORE DELETE ON memory_vector BEGIN
    DELETE FROM memory_code WHERE id = old.id;
    INSERT INTO memory_vector_gone (vector) VALUES (old.id);
END;

-- What a Hob of this version wrote.
INSERT INTO memory_source (id, path, title, place, hash, modified, size, recipe, indexed, chunks, tokens)
VALUES (3, '/documents/3.md', 'Document 3', 'line', zeroblob(32), 7, 11, '512/64', 1700000000000003, 1, 3);
INSERT INTO memory_chunk (id, source, position, title, text, line, end_line, tokens)
VALUES (192, 3, 0, 'Boilers', 'Service number 3 every autumn', 1, 2, 3);
INSERT INTO memory_words (rowid, title, text) VALUES (192, 'Boilers', 'Service number 3 every autumn');
INSERT INTO memory_sample (rowid, title, text) VALUES (192, 'Boilers', 'Service number 3 every autumn');
INSERT INTO memory_vector (id, chunk, model, scale, vector) VALUES (3, 192, 1, 0.007874015748031496, x'7f000000');
INSERT INTO memory_code (id, model, code) VALUES (3, 1, x'0100000000000000');

PRAGMA user_version = 3;
