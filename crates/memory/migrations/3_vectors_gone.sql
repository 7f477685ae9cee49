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
