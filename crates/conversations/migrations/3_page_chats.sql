-- Chats of the pages. A chat belongs to a caller, `settings` is JSON ('' for none), and `current_turn` is the turn at the end of the branch that
-- is shown; 0 is the last one. Until now all chats were those of the owner's terminal.
ALTER TABLE chat ADD COLUMN owner TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE chat ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chat ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chat ADD COLUMN settings TEXT NOT NULL DEFAULT '';
ALTER TABLE chat ADD COLUMN current_turn INTEGER NOT NULL DEFAULT 0;

UPDATE chat SET created = last_used;

DROP INDEX chat_last_used;
CREATE INDEX chat_page ON chat (owner, pinned, last_used, id, bytes);

-- `parent` is the turn before this one: 0 for none, and -1 for the turn with the next lower number. `attachments` is a JSON array and `detail`
-- a JSON object ('' for none): reasoning, sources, steps, usage, error. `state` is 'none' without an answer, 'cut' or 'failed'; '' means
-- what `ending` says.
ALTER TABLE chat_turn ADD COLUMN parent INTEGER NOT NULL DEFAULT -1;
ALTER TABLE chat_turn ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chat_turn ADD COLUMN attachments TEXT NOT NULL DEFAULT '';
ALTER TABLE chat_turn ADD COLUMN detail TEXT NOT NULL DEFAULT '';
ALTER TABLE chat_turn ADD COLUMN state TEXT NOT NULL DEFAULT '';

UPDATE chat_turn SET created = (SELECT last_used FROM chat WHERE id = chat_turn.chat);

-- The words of titles and turns. The number of a row is that of its chat, times 2^20, plus that of its turn; 0 is the title.
CREATE VIRTUAL TABLE chat_words USING fts5 (
    words,
    content = '', contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 0'
);

INSERT INTO chat_words (rowid, words) SELECT id << 20, substr(title, 1, 50000) FROM chat;
INSERT INTO chat_words (rowid, words)
    SELECT (chat << 20) + number, substr(question, 1, 50000) || ' ' || substr(answer, 1, 50000) FROM chat_turn
    WHERE number < 1 << 20;

CREATE TRIGGER chat_title_comes AFTER INSERT ON chat BEGIN
    INSERT INTO chat_words (rowid, words) VALUES (new.id << 20, substr(new.title, 1, 50000));
END;

CREATE TRIGGER chat_title_changes AFTER UPDATE OF title ON chat BEGIN
    DELETE FROM chat_words WHERE rowid = old.id << 20;
    INSERT INTO chat_words (rowid, words) VALUES (new.id << 20, substr(new.title, 1, 50000));
END;

CREATE TRIGGER chat_title_goes AFTER DELETE ON chat BEGIN
    DELETE FROM chat_words WHERE rowid = old.id << 20;
END;

CREATE TRIGGER chat_turn_comes AFTER INSERT ON chat_turn WHEN new.number < 1 << 20 BEGIN
    INSERT INTO chat_words (rowid, words)
    VALUES ((new.chat << 20) + new.number, substr(new.question, 1, 50000) || ' ' || substr(new.answer, 1, 50000));
END;

CREATE TRIGGER chat_turn_changes AFTER UPDATE OF question, answer ON chat_turn WHEN new.number < 1 << 20 BEGIN
    DELETE FROM chat_words WHERE rowid = (old.chat << 20) + old.number;
    INSERT INTO chat_words (rowid, words)
    VALUES ((new.chat << 20) + new.number, substr(new.question, 1, 50000) || ' ' || substr(new.answer, 1, 50000));
END;

CREATE TRIGGER chat_turn_goes AFTER DELETE ON chat_turn WHEN old.number < 1 << 20 BEGIN
    DELETE FROM chat_words WHERE rowid = (old.chat << 20) + old.number;
END;

-- Settings for chats that have a name. `settings` is JSON.
CREATE TABLE saved_assistant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    settings TEXT NOT NULL
) STRICT;

CREATE INDEX saved_assistant_owner ON saved_assistant (owner, id);
