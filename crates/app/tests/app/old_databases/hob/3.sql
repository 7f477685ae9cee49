-- Messages that were taken in from channels. `identity` is what a message is known by, and NULL where its channel gives it
-- nothing; `message` is there until it has been dealt with. Times are microseconds since 1970 in UTC.
CREATE TABLE channel_inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT UNIQUE,
    message TEXT,
    received INTEGER NOT NULL
) STRICT;

CREATE INDEX channel_inbox_unsettled ON channel_inbox (id) WHERE message IS NOT NULL;

-- What was said in conversations. `sender` is who asked, for questions and for their answers.
CREATE TABLE conversation_line (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    speaker TEXT NOT NULL,
    sender TEXT NOT NULL,
    content TEXT NOT NULL,
    said INTEGER NOT NULL
) STRICT;

CREATE INDEX conversation_line_of ON conversation_line (channel, conversation, id);

-- What a Hob of this version wrote.
INSERT INTO channel_inbox (identity, message, received) VALUES ('settled', NULL, 1700000000000000);
INSERT INTO channel_inbox (identity, message, received) VALUES ('open', 'What is the weather?', 1700000000000000);
INSERT INTO conversation_line (channel, conversation, speaker, sender, content, said)
VALUES ('whatsapp', 'family', 'person', 'ada', 'Good morning', 1700000000000000), ('whatsapp', 'family', 'hob', 'ada', 'Good morning, Ada', 1700000000000000);

PRAGMA user_version = 3;
