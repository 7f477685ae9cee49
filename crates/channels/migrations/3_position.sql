-- How far a channel has read. The text is the channel's own.
CREATE TABLE channel_position (
    channel TEXT NOT NULL PRIMARY KEY,
    position TEXT NOT NULL
);
