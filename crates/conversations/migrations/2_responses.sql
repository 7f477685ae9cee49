-- Responses of the HTTP API that callers can read again and continue by their id. `owner` is the caller they belong to, `previous` the
-- response that this one continues. `body` is the response and `input` the list of items that were asked, both as JSON; `bytes` is the
-- size of both. A response that is still being written has a `lease`: after that moment nobody writes it any more. Times are
-- microseconds since 1970 in UTC.
CREATE TABLE stored_response (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    previous TEXT,
    body TEXT NOT NULL,
    input TEXT NOT NULL,
    lease INTEGER,
    bytes INTEGER NOT NULL,
    last_used INTEGER NOT NULL
) STRICT;

CREATE INDEX stored_response_last_used ON stored_response (owner, last_used, bytes);

-- Conversations of the HTTP API. `metadata` is JSON.
CREATE TABLE stored_conversation (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    created INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    last_used INTEGER NOT NULL
) STRICT;

CREATE INDEX stored_conversation_last_used ON stored_conversation (owner, last_used);

-- The items of a conversation, oldest first. `item` is JSON.
CREATE TABLE conversation_item (
    conversation TEXT NOT NULL REFERENCES stored_conversation (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT, WITHOUT ROWID;
