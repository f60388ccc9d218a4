-- Tasks that start by the clock.

CREATE TABLE schedule (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL,
    session       TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('shell', 'python', 'tool', 'agent')),
    title         TEXT NOT NULL,
    -- Of the tasks that it starts.
    spec          TEXT NOT NULL,
    -- One of the two says when.
    cron          TEXT,
    at            INTEGER,
    zone          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('active', 'paused', 'done', 'canceled')),
    missed        TEXT NOT NULL CHECK (missed IN ('skip', 'once', 'all')),
    overlap       TEXT NOT NULL CHECK (overlap IN ('skip', 'queue', 'parallel')),
    jitter_s      REAL NOT NULL CHECK (jitter_s >= 0),
    max_runtime_s REAL,
    -- So many active tasks of its kind its session may have.
    task_limit    INTEGER NOT NULL,
    hand_over     TEXT,
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    -- The nominal time of the next firing, and when that is made.
    next_at       INTEGER,
    due_at        INTEGER,
    -- The nominal time up to which everything is dealt with.
    last_at       INTEGER,
    fired         INTEGER NOT NULL DEFAULT 0,
    last_task     TEXT,
    detail        TEXT,
    CHECK ((cron IS NULL) <> (at IS NULL)),
    CHECK ((next_at IS NOT NULL) = (state = 'active')),
    CHECK ((due_at IS NOT NULL) = (state = 'active')),
    CHECK (due_at >= next_at),
    CHECK (next_at > last_at),
    CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'canceled')))
) STRICT;

CREATE INDEX schedule_by_session ON schedule (owner, session, seq);
CREATE INDEX schedule_due ON schedule (due_at) WHERE state = 'active';

-- The key is what makes "a firing never happens twice" a fact of the database.
CREATE TABLE firing (
    schedule   INTEGER NOT NULL REFERENCES schedule (seq) ON DELETE CASCADE,
    nominal_at INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    task       TEXT,
    reason     TEXT,
    PRIMARY KEY (schedule, nominal_at),
    CHECK (task IS NOT NULL OR reason IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_of_schedule ON task (schedule, seq) WHERE schedule IS NOT NULL;
