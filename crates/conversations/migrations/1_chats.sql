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
