-- What came of choices, told apart. `tries` is how often a model was chosen, whatever came of it: one that never earns a reward must
-- not be tried for ever.
ALTER TABLE router_model ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;

UPDATE router_model SET tries = samples;

-- `question` is NULL where nobody asked anything anew, as when a client brings what its tools gave. `answered` is whether the model's
-- answer came to its end. `implicit` is the reward as it would be if nobody had said anything of the answer.
CREATE TABLE router_decision_anew (
    run TEXT PRIMARY KEY,
    decided INTEGER NOT NULL,
    source TEXT NOT NULL,
    policy TEXT NOT NULL,
    class TEXT NOT NULL,
    engine TEXT NOT NULL,
    model TEXT NOT NULL,
    rivals TEXT NOT NULL,
    probability REAL,
    question INTEGER,
    answered INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    implicit REAL,
    reward REAL
) STRICT;

-- A failure earned nothing, so that whatever earned something was an answer.
INSERT INTO router_decision_anew
SELECT
    run, decided, source, policy, class, engine, model, rivals, probability, question, coalesce(reward > 0, FALSE), retried,
    CASE WHEN run IN (SELECT run FROM feedback) THEN NULL ELSE reward END, reward
FROM router_decision;

DROP TABLE router_decision;

ALTER TABLE router_decision_anew RENAME TO router_decision;

CREATE INDEX router_decision_decided ON router_decision (decided);

CREATE INDEX router_decision_question ON router_decision (question, decided);

-- What a Hob of this version wrote.
INSERT INTO router_decision (
    run, decided, source, policy, class, engine, model, rivals, probability, question, answered, retried, implicit, reward
) VALUES ('decided-9', 1700000000000000, 'server', 'grpo', 'code/short/english', 'ollama', 'm', '["m","n"]', 0.5, NULL, 1, 0, 0.5, 0.5);
UPDATE router_model SET tries = tries + 1, samples = samples + 1, rewards = rewards + 0.5;

PRAGMA user_version = 9;
