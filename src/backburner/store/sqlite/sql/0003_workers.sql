-- Applications that carry out tasks in themselves: tools and agents.

-- It holds a lock that is named after it for as long as it lives.
CREATE TABLE worker (
    id         TEXT PRIMARY KEY,
    boot_id    TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- What a process that takes over its work is started with, where it has left any.
    hand_over  TEXT
) STRICT;

-- Who carries the task out in itself; NULL for what the keeper starts as processes.
ALTER TABLE task ADD COLUMN worker TEXT;
-- What a model has used for it: a JSON object.
ALTER TABLE task ADD COLUMN usage TEXT;

CREATE INDEX task_of_worker ON task (worker)
    WHERE worker IS NOT NULL AND state IN ('running', 'input_required');
