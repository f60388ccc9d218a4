-- What tasks wait for, what they ask, and where signals are pushed to.

CREATE TABLE queue (
    name   TEXT PRIMARY KEY,
    width  INTEGER NOT NULL CHECK (width >= 1),
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1))
) STRICT;

ALTER TABLE task ADD COLUMN queue TEXT REFERENCES queue (name);
-- A JSON list of ids.
ALTER TABLE task ADD COLUMN after TEXT;
ALTER TABLE task ADD COLUMN after_failure INTEGER NOT NULL DEFAULT 0 CHECK (after_failure IN (0, 1));
ALTER TABLE task ADD COLUMN retries_left INTEGER NOT NULL DEFAULT 0 CHECK (retries_left >= 0);
ALTER TABLE task ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN not_before INTEGER;
-- The cgroup that limits the memory of the attempt, where one does.
ALTER TABLE task ADD COLUMN memory_cgroup TEXT;
-- How much of what the job reports of itself is in the record.
ALTER TABLE task ADD COLUMN reported INTEGER NOT NULL DEFAULT 0 CHECK (reported >= 0);

CREATE INDEX task_running_of_queue ON task (queue)
    WHERE queue IS NOT NULL AND state IN ('running', 'input_required');
CREATE INDEX task_waiting_in_queue ON task (queue) WHERE queue IS NOT NULL AND state = 'queued';

CREATE TABLE question (
    seq         INTEGER PRIMARY KEY,
    task        INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt     INTEGER NOT NULL,
    id          TEXT NOT NULL,
    text        TEXT NOT NULL,
    asked_at    INTEGER NOT NULL,
    answer      TEXT,
    answered_at INTEGER,
    withdrawn   INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)),
    -- The answer has reached the job.
    handed_on   INTEGER NOT NULL DEFAULT 0 CHECK (handed_on IN (0, 1)),
    UNIQUE (task, attempt, id),
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK (answer IS NULL OR withdrawn = 0)
) STRICT;

CREATE INDEX question_open ON question (task) WHERE answer IS NULL AND withdrawn = 0;
CREATE INDEX question_answered ON question (task) WHERE answer IS NOT NULL AND handed_on = 0;

CREATE TABLE channel (
    owner         TEXT NOT NULL,
    name          TEXT NOT NULL CHECK (name NOT IN ('inbox', 'notify')),
    session       TEXT,
    kind          TEXT NOT NULL CHECK (kind IN ('command', 'webhook', 'desktop')),
    target        TEXT NOT NULL,
    -- A JSON list of the kinds of signals, NULL for all.
    kinds         TEXT,
    allow_private INTEGER NOT NULL DEFAULT 0 CHECK (allow_private IN (0, 1)),
    -- The name of the file that holds its key; the key itself is not in the record.
    secret        TEXT,
    -- Why nothing goes through it.
    paused        TEXT,
    PRIMARY KEY (owner, name),
    CHECK ((secret IS NOT NULL) = (kind = 'webhook'))
) STRICT, WITHOUT ROWID;

-- What a session wants to be told: a JSON list of kinds of signals. A session that is not here wants all.
CREATE TABLE wish (
    owner   TEXT NOT NULL,
    session TEXT NOT NULL,
    kinds   TEXT NOT NULL,
    PRIMARY KEY (owner, session)
) STRICT;

CREATE INDEX signal_to_push ON signal (channel, seq)
    WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed');
