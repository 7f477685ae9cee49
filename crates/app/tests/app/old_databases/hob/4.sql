-- Which model answered when the choice was ours, and what came of it. Times are microseconds since 1970 in UTC.
--
-- `probability` is what the policy gave the model at that moment, and NULL where it left nothing to chance; `rivals` are the models it
-- chose from (JSON). `question` is a number by which the same question is known again, and nothing else. `reward` is NULL until there
-- is one.
CREATE TABLE router_decision (
    run TEXT PRIMARY KEY,
    decided INTEGER NOT NULL,
    source TEXT NOT NULL,
    policy TEXT NOT NULL,
    class TEXT NOT NULL,
    engine TEXT NOT NULL,
    model TEXT NOT NULL,
    rivals TEXT NOT NULL,
    probability REAL,
    question INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    reward REAL
) STRICT;

CREATE INDEX router_decision_decided ON router_decision (decided);

CREATE INDEX router_decision_question ON router_decision (question, decided);

-- What was learnt, by class of questions and by model. `recent` has the last rewards of the class (JSON). Models that are gone keep
-- their rows: they may come back.
CREATE TABLE router_class (
    class TEXT PRIMARY KEY,
    recent TEXT NOT NULL
) STRICT;

CREATE TABLE router_model (
    class TEXT NOT NULL,
    model TEXT NOT NULL,
    weight REAL NOT NULL,
    samples INTEGER NOT NULL,
    rewards REAL NOT NULL,
    log_seconds REAL,
    dollars REAL,
    PRIMARY KEY (class, model)
) STRICT, WITHOUT ROWID;

-- What people said of answers, whoever chose the model.
CREATE TABLE feedback (
    run TEXT PRIMARY KEY,
    rated INTEGER NOT NULL,
    rating TEXT NOT NULL,
    engine TEXT NOT NULL,
    model TEXT NOT NULL
) STRICT;

-- What a Hob of this version wrote.
INSERT INTO router_decision (run, decided, source, policy, class, engine, model, rivals, probability, question, retried, reward)
VALUES
    ('decided-4', 1700000000000000, 'ask', 'grpo', 'code/short/english', 'ollama', 'm', '["m","n"]', 0.5, 7, 0, 0.6),
    ('rated-4', 1700000000000000, 'ask', 'grpo', 'code/short/english', 'ollama', 'm', '["m","n"]', 0.5, 8, 0, 0.96);
INSERT INTO router_class (class, recent) VALUES ('code/short/english', '[0.6,0.96]');
INSERT INTO router_model (class, model, weight, samples, rewards, log_seconds, dollars)
VALUES ('code/short/english', 'm', 0.25, 2, 1.56, NULL, NULL);
INSERT INTO feedback (run, rated, rating, engine, model) VALUES ('rated-4', 1700000000000000, 'good', 'ollama', 'm');

PRAGMA user_version = 4;
