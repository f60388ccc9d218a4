-- The statements that every database takes as they are, by name; each has those that differ in a file
-- of its own. A line `-- name:` opens a statement; the comment under it says what it is for. {task}
-- and {changed} stand for the columns of a task in the order of rows.py, in a SELECT and in a
-- RETURNING; {signal} likewise.

-- name: task_count_active
-- How many tasks of a kind its session has: those that wait in queues, or all others. Not those
-- that wait for an earlier firing of their schedule, of which only one runs at a time; nor parked
-- calls, which have a limit of their own.
SELECT count(*) FROM task
WHERE owner = :owner AND session = :session AND kind = :kind
  AND state IN ('queued', 'running', 'input_required')
  AND NOT (state = 'queued' AND schedule IS NOT NULL AND after IS NOT NULL)
  AND parked_at IS NULL AND (queue IS NOT NULL AND state = 'queued') = :in_queue;

-- name: task_get
-- One task by its whole id.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end' WHERE t.id = :id;

-- name: task_any_active
-- Whether a keeper is needed.
SELECT EXISTS (SELECT 1 FROM task WHERE state IN ('queued', 'running', 'input_required'))
    OR EXISTS (SELECT 1 FROM task WHERE leftovers > 0)
    OR EXISTS (SELECT 1 FROM signal
               WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed'))
    OR EXISTS (SELECT 1 FROM schedule WHERE state = 'active');

-- name: task_requeue
-- running → queued, one attempt on, and perhaps with something to be started with.
UPDATE task SET state = 'queued', attempt = attempt + 1, started_at = NULL,
                hand_over = coalesce(:hand_over, hand_over), boot_id = NULL,
                started_boot = NULL, pid = NULL, cgroup = NULL, memory_cgroup = NULL, worker = NULL,
                detail = NULL, progress = NULL, ready_at = NULL, ended_for = NULL, reported = 0, events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('running', 'input_required')
RETURNING {changed};

-- name: task_fail_try
-- running → queued after a failure, one attempt on, not before a time. What was asked to stop ends.
UPDATE task SET state = 'queued', attempt = attempt + 1, retries_left = retries_left - 1,
                failures = failures + 1, not_before = :not_before, started_at = NULL,
                boot_id = NULL, started_boot = NULL, pid = NULL, cgroup = NULL,
                memory_cgroup = NULL, detail = NULL, progress = NULL, result = NULL,
                ready_at = NULL, ended_for = NULL, reported = 0, events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('running', 'input_required')
  AND retries_left > 0 AND stop_at IS NULL
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
                dropped_bytes = coalesce(:dropped_bytes, dropped_bytes),
                result = coalesce(:result, result), reported = coalesce(:reported, reported),
                ready_at = coalesce(ready_at, :ready_at), events = events + 1
WHERE id = :id AND attempt = :attempt AND (finished_at IS NULL OR leftovers > 0)
RETURNING {changed};

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

-- name: signals_of_ended_questions
-- Questions of a task that has ended need no answer.
UPDATE signal SET state = 'dropped', reason = 'the task has ended', consumer = NULL,
                  lease_boot = NULL, lease_until = NULL
WHERE task = :task AND kind = 'input_required' AND state IN ('pending', 'claimed', 'failed')
  AND EXISTS (SELECT 1 FROM question WHERE question.task = :task);

-- name: queue_put
-- A new queue, or another width.
INSERT INTO queue (name, width) VALUES (:name, :width)
ON CONFLICT (name) DO UPDATE SET width = excluded.width;

-- name: queue_pause
UPDATE queue SET paused = :paused WHERE name = :name RETURNING name;

-- name: queue_in_use
-- Whether a task is waiting in it or running in it.
SELECT 1 WHERE EXISTS (SELECT 1 FROM task WHERE queue = :name AND state = 'queued')
            OR EXISTS (SELECT 1 FROM task WHERE queue = :name
                       AND state IN ('running', 'input_required'));

-- name: queue_forget_tasks
-- Ended tasks name a queue that is about to go.
UPDATE task SET queue = NULL WHERE queue = :name;

-- name: queue_remove
DELETE FROM queue WHERE name = :name RETURNING name;

-- name: tasks_unqueued
SELECT count(CASE WHEN state = 'queued' THEN 1 END), count(CASE WHEN state <> 'queued' THEN 1 END)
FROM task WHERE state IN ('queued', 'running', 'input_required') AND queue IS NULL;

-- name: queues
SELECT q.name, q.width, q.paused,
       (SELECT count(*) FROM task t WHERE t.queue = q.name AND t.state = 'queued'),
       (SELECT count(*) FROM task t WHERE t.queue = q.name AND t.state IN ('running', 'input_required'))
FROM queue q ORDER BY q.name;

-- name: owner_limit_put
-- Of one owner, or with an empty name of every one that has none.
INSERT INTO owner_limit (owner, running) VALUES (:owner, :running)
ON CONFLICT (owner) DO UPDATE SET running = excluded.running;

-- name: owner_limit_clear
DELETE FROM owner_limit WHERE owner = :owner RETURNING owner;

-- name: owner_limit_any
SELECT 1 FROM owner_limit LIMIT 1;

-- name: owner_limits
-- With how many tasks of the owner run and wait; of the one without a name, how many of all those
-- that it is for.
SELECT l.owner, l.running,
       (SELECT count(*) FROM task t WHERE t.state IN ('running', 'input_required')
          AND (t.owner = l.owner OR (l.owner = '' AND t.owner NOT IN (SELECT owner FROM owner_limit)))),
       (SELECT count(*) FROM task t WHERE t.state = 'queued'
          AND (t.owner = l.owner OR (l.owner = '' AND t.owner NOT IN (SELECT owner FROM owner_limit))))
FROM owner_limit l ORDER BY l.owner;

-- name: questions_of_task
-- Of its present attempt, oldest first.
SELECT {question} FROM question q JOIN task t ON t.seq = q.task
WHERE t.id = :task AND q.attempt = t.attempt ORDER BY q.seq;

-- name: task_asks
-- running → input_required; one that asks already stays there.
UPDATE task SET state = 'input_required', events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('running', 'input_required')
RETURNING {changed};

-- name: task_is_talked_about
-- Something happened that concerns it and changes nothing of it.
UPDATE task SET events = events + 1 WHERE id = :id AND attempt = :attempt AND finished_at IS NULL
RETURNING {changed};

-- name: task_get_events
-- The number of its last event.
SELECT events FROM task WHERE id = :id;

-- name: message_send
-- The next one for a task that has not ended, while not too many wait.
INSERT INTO message (task, number, text, sent_at)
SELECT seq, 1 + coalesce((SELECT max(number) FROM message m WHERE m.task = task.seq), 0), :text, :now
FROM task
WHERE id = :task AND finished_at IS NULL
  AND :limit > (SELECT count(*) FROM message m WHERE m.task = task.seq AND m.taken IS NULL)
RETURNING number;

-- name: message_next
-- The first that has not reached the task.
SELECT {message} FROM message m JOIN task t ON t.seq = m.task
WHERE t.id = :task AND t.attempt = :attempt AND t.finished_at IS NULL
  AND m.taken IS NULL AND m.number > :after ORDER BY m.number LIMIT 1;

-- name: messages_for_processes
-- What the keeper has to hand on.
SELECT {message} FROM message m JOIN task t ON t.seq = m.task
WHERE m.taken IS NULL AND t.worker IS NULL AND t.state IN ('running', 'input_required')
ORDER BY m.task, m.number LIMIT :limit;

-- name: message_taken
-- By the attempt that runs; `again` where it may have been, and nobody heard of it.
UPDATE message SET taken = :attempt
WHERE task = (SELECT seq FROM task WHERE id = :task AND attempt = :attempt AND finished_at IS NULL)
  AND number = :number AND (taken IS NULL OR (:again AND taken = :attempt))
RETURNING number;

-- name: sessions_forget
-- Those that ended long ago, and of which no task is left.
DELETE FROM ended_session
WHERE ended_at < :before
  AND NOT EXISTS (SELECT 1 FROM task t
                  WHERE t.owner = ended_session.owner AND t.session = ended_session.session);

-- name: session_end
INSERT INTO ended_session (owner, session, ended_at) VALUES (:owner, :session, :now)
ON CONFLICT (owner, session) DO NOTHING;

-- name: session_drop_signals
-- What a session that has ended was to be told.
UPDATE signal SET state = 'dropped', reason = 'the session was deleted', consumer = NULL,
                  lease_boot = NULL, lease_until = NULL, retry_at = NULL
WHERE owner = :owner AND session = :session AND state IN ('pending', 'claimed', 'failed');

-- name: session_has_ended
SELECT 1 FROM ended_session WHERE owner = :owner AND session = :session;

-- name: task_reported
-- So much of its report is dealt with; less than before where the job has begun it anew.
UPDATE task SET reported = :reported
WHERE id = :id AND attempt = :attempt AND finished_at IS NULL
RETURNING seq;

-- name: channel_put
INSERT INTO channel (owner, name, session, kind, target, kinds, allow_private, secret)
VALUES (:owner, :name, :session, :kind, :target, :kinds, :allow_private, :secret)
ON CONFLICT (owner, name) DO NOTHING
RETURNING name;

-- name: channel_remove
DELETE FROM channel WHERE owner = :owner AND name = :name RETURNING name;

-- name: channels
SELECT owner, name, session, kind, target, kinds, allow_private, secret, paused
FROM channel ORDER BY owner, name;

-- name: wish_set
INSERT INTO wish (owner, session, kinds) VALUES (:owner, :session, :kinds)
ON CONFLICT (owner, session) DO UPDATE SET kinds = excluded.kinds;

-- name: wish_clear
DELETE FROM wish WHERE owner = :owner AND session = :session;

-- name: wish_of_session
SELECT kinds FROM wish WHERE owner = :owner AND session = :session;

-- name: task_park
-- A call that was recorded from the start has outlived its budget.
UPDATE task SET parked_at = coalesce(parked_at, :now), events = events + 1
WHERE id = :id AND attempt = :attempt AND state IN ('queued', 'running', 'input_required')
RETURNING {changed};

-- name: tasks_parked
-- How many parked calls of a session go on.
SELECT count(*) FROM task
WHERE owner = :owner AND session = :session AND kind = 'tool'
  AND state IN ('queued', 'running', 'input_required') AND parked_at IS NOT NULL;

-- name: worker_put
INSERT INTO worker (id, boot_id, pid, created_at, hand_over)
VALUES (:id, :boot_id, :pid, :now, :hand_over)
ON CONFLICT (id) DO UPDATE SET hand_over = excluded.hand_over
RETURNING id;

-- name: worker_remove
DELETE FROM worker WHERE id = :id RETURNING id;

-- name: tasks_of_worker
-- What it carries out.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.worker = :worker AND t.state IN ('running', 'input_required') ORDER BY t.seq;

-- name: schedule_insert
-- One that is to fire; nothing where the id is taken.
INSERT INTO schedule (id, owner, session, kind, title, spec, cron, at, zone, state, missed, overlap,
                      jitter_s, max_runtime_s, task_limit, hand_over, created_at, next_at, due_at,
                      priority)
VALUES (:id, :owner, :session, :kind, :title, :spec, :cron, :at, :zone, 'active', :missed, :overlap,
        :jitter_s, :max_runtime_s, :task_limit, :hand_over, :now, :next_at, :due_at, :priority)
ON CONFLICT (id) DO NOTHING
RETURNING {schedule};

-- name: schedule_count
-- Those of a session that have not ended.
SELECT count(*) FROM schedule
WHERE owner = :owner AND session = :session AND state IN ('active', 'paused');

-- name: schedule_get
SELECT {schedule} FROM schedule WHERE id = :id;

-- name: schedules_due
SELECT {schedule} FROM schedule WHERE state = 'active' AND due_at <= :now
ORDER BY due_at LIMIT :limit;

-- name: schedule_next_due
SELECT min(due_at) FROM schedule WHERE state = 'active';

-- name: schedule_bring_forward
-- To a time that comes before the one that was expected, and was not dealt with.
UPDATE schedule SET next_at = :next_at, due_at = :due_at
WHERE id = :id AND state = 'active' AND next_at = :expected AND next_at > :next_at
  AND (last_at IS NULL OR last_at < :next_at)
RETURNING id;

-- name: firings_undo
-- What a clock that was ahead has dealt with of times to come, while nothing else is expected.
DELETE FROM firing WHERE nominal_at >= :since AND schedule = (
    SELECT seq FROM schedule WHERE id = :id AND state = 'active' AND next_at = :expected);

-- name: schedule_undo
-- The same in the schedule itself: the last that it has dealt with is what is left.
UPDATE schedule SET last_at = (SELECT max(nominal_at) FROM firing WHERE schedule = schedule.seq)
WHERE id = :id AND state = 'active' AND next_at = :expected AND last_at >= :since;

-- name: schedule_fired
-- What the move has started.
UPDATE schedule SET fired = fired + :fired, last_task = coalesce(:last_task, last_task)
WHERE seq = :seq;

-- name: firing_insert
INSERT INTO firing (schedule, nominal_at, at, task, reason)
VALUES (:schedule, :nominal_at, :at, :task, :reason);

-- name: firings_trim
-- The newest are kept.
DELETE FROM firing WHERE schedule = :schedule AND nominal_at <= (
    SELECT nominal_at FROM firing WHERE schedule = :schedule
    ORDER BY nominal_at DESC LIMIT 1 OFFSET :kept);

-- name: firings_of_schedule
SELECT s.id, f.nominal_at, f.at, f.task, f.reason
FROM schedule s JOIN firing f ON f.schedule = s.seq
WHERE s.id = :id ORDER BY f.nominal_at DESC LIMIT :limit;

-- name: schedules_forget
-- Ended ones; their tasks have a life of their own.
DELETE FROM schedule WHERE ended_at < :before RETURNING seq;

-- name: token_get
SELECT {token} FROM token WHERE id = :id;

-- name: tokens
SELECT {token} FROM token ORDER BY seq;

-- name: token_revoke
-- With those that it was traded for.
UPDATE token SET revoked_at = :now WHERE :id IN (id, parent) AND revoked_at IS NULL
RETURNING {token};
