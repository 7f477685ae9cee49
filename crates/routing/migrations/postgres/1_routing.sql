-- Which model answered when the router chose it, and the outcome. Times are microseconds since 1970 in UTC.
--
-- `probability` is NULL if the choice was not random. `rivals` are the models to choose from (JSON). `question` is a hash; NULL if
-- the user asked nothing new. `answered` is whether the answer was complete. `implicit` is the reward without a rating.
CREATE TABLE router_decision (
    run TEXT PRIMARY KEY,
    decided BIGINT NOT NULL,
    source TEXT NOT NULL,
    policy TEXT NOT NULL,
    class TEXT NOT NULL,
    engine TEXT NOT NULL,
    model TEXT NOT NULL,
    rivals TEXT NOT NULL,
    probability DOUBLE PRECISION,
    question BIGINT,
    answered BOOLEAN NOT NULL,
    retried BOOLEAN NOT NULL,
    implicit DOUBLE PRECISION,
    reward DOUBLE PRECISION
);

CREATE INDEX router_decision_decided ON router_decision (decided);

CREATE INDEX router_decision_question ON router_decision (question, decided);

-- What was learned, by class of questions and by model. `recent` has the last rewards of the class (JSON). The row of a class is the
-- lock for its models.
CREATE TABLE router_class (
    class TEXT PRIMARY KEY,
    recent TEXT NOT NULL
);

CREATE TABLE router_model (
    class TEXT NOT NULL,
    model TEXT NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    tries BIGINT NOT NULL,
    samples BIGINT NOT NULL,
    rewards DOUBLE PRECISION NOT NULL,
    log_seconds DOUBLE PRECISION,
    dollars DOUBLE PRECISION,
    PRIMARY KEY (class, model)
);

-- Ratings of answers, also of those whose model the router did not choose.
CREATE TABLE feedback (
    run TEXT PRIMARY KEY,
    rated BIGINT NOT NULL,
    rating TEXT NOT NULL,
    engine TEXT NOT NULL,
    model TEXT NOT NULL
);
