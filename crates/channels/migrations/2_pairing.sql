-- Senders whom the owner has approved. Times are microseconds since 1970 in UTC.
CREATE TABLE channel_sender (
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    name TEXT NOT NULL,
    approved INTEGER NOT NULL,
    PRIMARY KEY (channel, sender)
) STRICT;

-- Senders who got a code, which is valid until the moment `ends`.
CREATE TABLE channel_pairing (
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    name TEXT NOT NULL,
    code TEXT NOT NULL UNIQUE,
    ends INTEGER NOT NULL,
    PRIMARY KEY (channel, sender)
) STRICT;
