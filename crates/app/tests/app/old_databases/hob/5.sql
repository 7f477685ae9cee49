-- Conversations at the terminal. `title` is how the first question begins, `bytes` the size of all its turns. Times are
-- microseconds since 1970 in UTC.
CREATE TABLE chat (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    last_used INTEGER NOT NULL
) STRICT;

CREATE INDEX chat_last_used ON chat (last_used);

-- A question and its answer. `ending` says whether the answer is whole.
CREATE TABLE chat_turn (
    chat INTEGER NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    ending TEXT NOT NULL,
    model TEXT NOT NULL,
    PRIMARY KEY (chat, number)
) STRICT, WITHOUT ROWID;

-- What a Hob of this version wrote.
INSERT INTO chat (title, bytes, last_used) VALUES ('What is a hob?', 40, 1700000000000000);
INSERT INTO chat_turn (chat, number, question, answer, ending, model)
VALUES (1, 1, 'What is a hob?', 'A helpful spirit of the house', 'complete', 'm');

PRAGMA user_version = 5;
