-- Scheduled tasks and their runs. The columns mean the same as in SQLite: times are microseconds since 1970 in UTC, `tools`,
-- `permit` and `metadata` are JSON.
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
    retries BIGINT NOT NULL,
    timeout_us BIGINT NOT NULL,
    missed TEXT NOT NULL,
    metadata TEXT NOT NULL,
    status TEXT NOT NULL,
    next_run BIGINT,
    last_run BIGINT,
    created_at BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    retry_slot BIGINT,
    retry_attempt BIGINT,
    retry_at BIGINT,
    due BIGINT
);

-- A poll reads what is due from here, and the time of the next one. Tasks that run or are done are not in it.
CREATE INDEX task_due ON task (due) WHERE status = 'active' AND due IS NOT NULL;

-- One row for each try at a slot. `lease` is how long its owner has promised to be alive.
CREATE TABLE task_run (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    slot BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    cause TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    outcome TEXT,
    result TEXT,
    error TEXT,
    UNIQUE (task_id, slot, attempt)
);

CREATE INDEX task_run_log ON task_run (task_id, id);

-- A task never overlaps itself.
CREATE UNIQUE INDEX task_run_single ON task_run (task_id) WHERE finished_at IS NULL;

CREATE INDEX task_run_lease ON task_run (lease) WHERE finished_at IS NULL;
