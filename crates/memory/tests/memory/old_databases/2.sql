-- Who puts a chunk in puts its words in, too. A trigger did this until now, and an insert that fires one begins a savepoint, at
-- which the index of words writes down all it has collected: after every single chunk, instead of once for thousands.
DROP TRIGGER memory_chunk_comes;
DROP TRIGGER memory_chunk_comes_to_the_sample;

-- What a Hob of this version wrote.
INSERT INTO memory_source (id, path, title, place, hash, modified, size, recipe, indexed, chunks, tokens)
VALUES (2, '/documents/2.md', 'Document 2', 'line', zeroblob(32), 7, 11, '512/64', 1700000000000002, 1, 3);
INSERT INTO memory_chunk (id, source, position, title, text, line, end_line, tokens)
VALUES (128, 2, 0, 'Boilers', 'Service number 2 every autumn', 1, 2, 3);
INSERT INTO memory_words (rowid, title, text) VALUES (128, 'Boilers', 'Service number 2 every autumn');
INSERT INTO memory_sample (rowid, title, text) VALUES (128, 'Boilers', 'Service number 2 every autumn');
INSERT INTO memory_vector (id, chunk, model, scale, vector) VALUES (2, 128, 1, 0.007874015748031496, x'7f000000');
INSERT INTO memory_code (id, model, code) VALUES (2, 1, x'0100000000000000');

PRAGMA user_version = 2;
