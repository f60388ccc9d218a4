-- Which task goes first, and how many of an owner run at once.

ALTER TABLE task ADD COLUMN priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -10 AND 10);
-- Of the tasks that it starts.
ALTER TABLE schedule ADD COLUMN priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -10 AND 10);

-- The empty name stands for every owner that is not here.
CREATE TABLE owner_limit (
    owner   TEXT PRIMARY KEY,
    running INTEGER NOT NULL CHECK (running >= 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_running ON task (owner) WHERE state IN ('running', 'input_required');

-- Two owners may have channels of one name, and neither waits for the other's.
DROP INDEX signal_to_push;
CREATE INDEX signal_to_push ON signal (owner, channel, seq)
    WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed');
