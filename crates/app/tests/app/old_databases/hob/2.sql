-- Scheduled tasks and their runs. Times are microseconds since 1970 in UTC.
--
-- `next_run` is the slot to come, `due` when somebody has to look at the task: at a retry or at the next slot, and never while
-- it runs. Slots up to `settled` are done with, whatever the clock says later. `tools`, `permit` and `metadata` are JSON.
CREATE TABLE task (
    id TEXT PRIMARY KEY,
    prompt TEXT NOT NULL,
    schedule_type TEXT NOT NULL,
    schedule_value TEXT NOT NULL,
    timezone TEXT NOT NULL,
    agent TEXT NOT NULL,
    tools TEXT,
    permit TEXT NOT NULL,
    channel TEXT,
    conversation TEXT,
    retries INTEGER NOT NULL,
    timeout_us INTEGER NOT NULL,
    missed TEXT NOT NULL,
    metadata TEXT NOT NULL,
    status TEXT NOT NULL,
    next_run INTEGER,
    last_run INTEGER,
    created_at INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    retry_slot INTEGER,
    retry_attempt INTEGER,
    retry_at INTEGER,
    due INTEGER
) STRICT;

-- A poll reads what is due from here, and the time of the next one.
CREATE INDEX task_due ON task (status, due, id);

-- One row for each try at a slot. `lease` is how long its owner has promised to be alive.
CREATE TABLE task_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    slot INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    cause TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    outcome TEXT,
    result TEXT,
    error TEXT,
    UNIQUE (task_id, slot, attempt)
) STRICT;

CREATE INDEX task_run_log ON task_run (task_id, id);

-- A task never overlaps itself.
CREATE UNIQUE INDEX task_run_single ON task_run (task_id) WHERE finished_at IS NULL;

CREATE INDEX task_run_lease ON task_run (lease) WHERE finished_at IS NULL;

-- What a Hob of this version wrote.
INSERT INTO task (
    id, prompt, schedule_type, schedule_value, timezone, agent, tools, permit, channel, conversation, retries, timeout_us, missed,
    metadata, status, next_run, last_run, created_at, settled, retry_slot, retry_attempt, retry_at, due
) VALUES (
    'water-the-plants', 'Remind me to water the plants', 'cron', '0 8 * * *', 'UTC', 'simple', NULL,
    '{"most":"pure","also":[],"only":null,"tainted":false}', NULL, NULL, 2, 600000000, 'once', '{}', 'active',
    1700086400000000, 1700000000000000, 1699913600000000, 1700000000000000, NULL, NULL, NULL, 1700086400000000
);
INSERT INTO task_run (task_id, slot, attempt, cause, owner, lease, started_at, finished_at, outcome, result, error)
VALUES ('water-the-plants', 1700000000000000, 1, 'schedule', 'host-1', 1700000030000000, 1700000000000000, 1700000005000000, 'succeeded', 'They are dry', NULL);

PRAGMA user_version = 2;
