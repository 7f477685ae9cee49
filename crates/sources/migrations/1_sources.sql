-- The text of watched web pages. Times are microseconds since 1970 in UTC. `earlier` is the text that changes are compared with, and
-- `latest` the text of the last check. `window_began` is the first check that is compared with `earlier`.
CREATE TABLE source_page (
    name TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    earlier TEXT NOT NULL,
    earlier_read INTEGER NOT NULL,
    latest TEXT NOT NULL,
    window_began INTEGER NOT NULL
) STRICT;
