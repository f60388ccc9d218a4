-- Every statement that the store runs, by name. A line `-- name:` opens a statement; the comment
-- under it says what it is for. {task} and {changed} stand for
-- the columns of a task in the order of rows.py, in a SELECT and in a RETURNING; {signal} likewise.
-- Finished tasks may be a million: a leading + keeps SQLite from an index that would visit them all.

-- name: task_insert
-- A task that has not started, or that could not; nothing where the id is taken.
INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, max_runtime_s,
                  parent, schedule, hand_over, events)
VALUES (:id, :owner, :session, :kind, :title, :spec, 'queued', :now, :max_runtime_s,
        :parent, :schedule, :hand_over, 1)
ON CONFLICT (id) DO NOTHING
RETURNING {changed};

-- name: task_count_active
-- How many places of its session a kind of task takes now.
SELECT count(*) FROM task
WHERE owner = :owner AND session = :session AND kind = :kind
  AND state IN ('queued', 'running', 'input_required');

-- name: task_get
-- One task by its whole id.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end' WHERE t.id = :id;

-- name: task_find
-- Tasks by the beginning of their id.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.id >= :prefix AND t.id < :prefix || '~' AND +t.owner = :owner
  AND (:session IS NULL OR t.session = :session)
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_of_session
-- The newest tasks of one session; `states` is a JSON list, empty for all.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.owner = :owner AND t.session = :session AND t.seq < :before
  AND (:states = '[]' OR t.state IN (SELECT value FROM json_each(:states)))
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_of_owner
-- The newest tasks of all sessions of an owner.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.owner = :owner AND t.seq < :before
  AND (:states = '[]' OR t.state IN (SELECT value FROM json_each(:states)))
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_active
-- The newest tasks that have not ended, of one session or of all of an owner.
SELECT {task} FROM task t INDEXED BY task_active LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.state IN ('queued', 'running', 'input_required') AND t.owner = :owner
  AND (:session IS NULL OR t.session = :session) AND t.seq < :before
  AND t.state IN (SELECT value FROM json_each(:states))
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_active
-- Everything that has not ended, and everything that left processes behind.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task INDEXED BY task_active
                WHERE state IN ('queued', 'running', 'input_required')
                UNION SELECT seq FROM task WHERE leftovers > 0)
  AND (:kind IS NULL OR t.kind = :kind)
ORDER BY t.seq;

-- name: task_any_active
-- Whether a keeper is needed.
SELECT EXISTS (SELECT 1 FROM task WHERE state IN ('queued', 'running', 'input_required'))
    OR EXISTS (SELECT 1 FROM task WHERE leftovers > 0);

-- name: task_waiting_for_worker
-- What a worker must start or stop.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task WHERE kind = :kind AND state = 'queued'
                UNION SELECT seq FROM task WHERE kind = :kind AND stop_at IS NOT NULL
                        AND (finished_at IS NULL OR leftovers > 0))
ORDER BY t.seq LIMIT :limit;

-- name: task_claim
-- queued → running.
UPDATE task SET state = 'running', started_at = max(:now, created_at), boot_id = :boot_id,
                started_boot = :started_boot, pid = :pid, cgroup = :cgroup, events = events + 1
WHERE id = :id AND attempt = :attempt AND state = 'queued'
RETURNING {changed};

-- name: task_requeue
-- running → queued, one attempt on.
UPDATE task SET state = 'queued', attempt = attempt + 1, started_at = NULL, boot_id = NULL,
                started_boot = NULL, pid = NULL, cgroup = NULL, detail = NULL, progress = NULL,
                ready_at = NULL, ended_for = NULL, events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('running', 'input_required')
RETURNING {changed};

-- name: task_finish
-- An active state → the ending. A clock that was set back does not end a task before its start.
UPDATE task SET state = :state, finished_at = max(:now, created_at, coalesce(started_at, 0)),
                exit_code = :exit_code, error_kind = :error_kind, error_message = :error_message,
                summary = :summary, result = :result, leftovers = :leftovers,
                output_bytes = coalesce(:output_bytes, output_bytes),
                dropped_bytes = coalesce(:dropped_bytes, dropped_bytes), events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN (SELECT value FROM json_each(:sources))
RETURNING {ended};

-- name: task_request_stop
-- An active task, or one that left processes behind, is asked to end; the first request stays,
-- unless a later one is more urgent.
UPDATE task SET stop_at = coalesce(stop_at, :now),
                stop_grace_s = min(coalesce(stop_grace_s, :grace_s), :grace_s),
                events = events + 1
WHERE id = :id AND (state IN ('running', 'input_required') OR leftovers > 0)
RETURNING {changed};

-- name: task_begin_ending
-- The first reason stays.
UPDATE task SET ended_for = :reason, events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('running', 'input_required')
  AND ended_for IS NULL
RETURNING {changed};

-- name: task_note
-- Facts beside the state. A task that has ended and left nothing behind is final.
UPDATE task SET detail = coalesce(:detail, detail), progress = coalesce(:progress, progress),
                leftovers = coalesce(:leftovers, leftovers),
                output_bytes = coalesce(:output_bytes, output_bytes),
                dropped_bytes = coalesce(:dropped_bytes, dropped_bytes), events = events + 1
WHERE id = :id AND attempt = :attempt AND (finished_at IS NULL OR leftovers > 0)
RETURNING {changed};

-- name: task_prunable
-- Ended before a time, with nothing left running.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.finished_at IS NOT NULL AND t.finished_at < :before AND t.leftovers = 0
  AND (:owner IS NULL OR t.owner = :owner) AND (:session IS NULL OR t.session = :session)
ORDER BY t.finished_at LIMIT :limit;

-- name: task_forget
-- Ended tasks only; events and signals go with them.
DELETE FROM task
WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at IS NOT NULL AND leftovers = 0
RETURNING seq;

-- name: event_insert
-- The change that it tells of has raised the count in the task's row.
INSERT INTO event (task, number, at, kind, data)
SELECT :task, events, :at, :kind, :data FROM task WHERE seq = :task;

-- name: events_of_task
SELECT e.seq, t.id, e.number, e.at, e.kind, e.data
FROM task t JOIN event e ON e.task = t.seq
WHERE t.id = :id AND e.number > :after ORDER BY e.number LIMIT :limit;

-- name: events_since
SELECT e.seq, t.id, e.number, e.at, e.kind, e.data
FROM event e JOIN task t ON t.seq = e.task
WHERE e.seq > :seq ORDER BY e.seq LIMIT :limit;

-- name: event_last
SELECT coalesce(max(seq), 0) FROM event;

-- name: signal_insert
INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at)
VALUES (:key, :task, :owner, :session, :kind, :text, :data, 'pending', :channel, :now);

-- name: signals_of_session
-- `states` is a JSON list, empty for all.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.session = :session AND s.seq > :after
  AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_owner
-- The same for all sessions of an owner.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE +s.owner = :owner AND s.seq > :after
  AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_task
-- The same for one task.
SELECT {signal} FROM task t JOIN signal s ON s.task = t.seq
WHERE t.id = :task AND +s.owner = :owner AND (:session IS NULL OR +s.session = :session)
  AND s.seq > :after AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
ORDER BY s.seq LIMIT :limit;

-- name: signals_free_in_session
-- Pending ones, ones whose retry is due, and ones whose holder let the lease run out. Both waits
-- are kept in boot time: they survive a clock that is set, and end with a reboot.
SELECT seq FROM signal
WHERE owner = :owner AND session = :session AND state IN ('pending', 'claimed', 'failed')
  AND (state = 'pending' OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_free_of_owner
-- The same for all sessions of an owner.
SELECT seq FROM signal
WHERE owner = :owner AND state IN ('pending', 'claimed', 'failed')
  AND (state = 'pending' OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_claim
-- Those that were found free, in the same transaction.
UPDATE signal SET state = 'claimed', consumer = :consumer, tries = tries + 1, retry_at = NULL,
                  reason = NULL, lease_boot = :boot, lease_until = :lease_until
WHERE seq IN (SELECT value FROM json_each(:seqs))
RETURNING seq, key, (SELECT id FROM task WHERE task.seq = signal.task), owner, session, kind, text,
          data, state, reason, channel, tries, created_at, delivered_at;

-- name: signals_acknowledge
UPDATE signal SET state = 'delivered', delivered_at = max(:now, created_at), consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL, reason = NULL
WHERE key IN (SELECT value FROM json_each(:keys)) AND +owner = :owner
  AND (:session IS NULL OR +session = :session) AND state IN ('pending', 'claimed', 'failed')
RETURNING seq;

-- name: signals_release
UPDATE signal SET state = 'pending', consumer = NULL, lease_boot = NULL, lease_until = NULL
WHERE consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: signal_failed
UPDATE signal SET state = 'failed', reason = :reason, retry_at = :retry_at, consumer = NULL,
                  lease_boot = :boot, lease_until = :lease_until
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
RETURNING seq;

-- name: signal_drop
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
RETURNING seq;
