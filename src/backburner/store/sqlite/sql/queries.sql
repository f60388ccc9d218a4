-- The statements that are SQLite's own, by name; the others are in store/record/sql, which says how
-- to read them.
-- Finished tasks may be a million: a leading + keeps SQLite from an index that would visit them all.

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

-- name: task_outlived_agents
-- Agents that have ended, and something in the sessions that bear their names has not.
SELECT {task} FROM (SELECT DISTINCT owner, session FROM task INDEXED BY task_active
                    WHERE state IN ('queued', 'running', 'input_required')) o
JOIN task t ON t.id = o.session AND t.owner = o.owner
LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.kind = 'agent' AND t.finished_at IS NOT NULL
ORDER BY t.seq;

-- name: task_kept
-- Everything of that which the keeper looks after: processes, and not what applications carry out.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task INDEXED BY task_active
                WHERE state IN ('queued', 'running', 'input_required')
                UNION SELECT seq FROM task WHERE leftovers > 0)
  AND t.hand_over IS NOT NULL AND t.worker IS NULL
ORDER BY t.seq;

-- name: task_waiting_for_keeper
-- What the keeper must start, stop, or fail because another one failed. What waits for its time (which
-- a clock that was set back cannot make longer than `latest`), for other tasks or for a place in its
-- queue is none of it, nor for others of its owner. Stops come first: thousands that are to be started
-- must not hide them.
WITH places (owner, free) AS MATERIALIZED (
    SELECT owner, (SELECT l.running FROM owner_limit l WHERE l.owner IN (r.owner, '')
                   ORDER BY l.owner = '' LIMIT 1) - count(*)
    FROM task r INDEXED BY task_running WHERE state IN ('running', 'input_required')
    GROUP BY owner
), due AS (
    SELECT seq, owner, priority, queue,
           row_number() OVER (PARTITION BY queue ORDER BY priority DESC, seq) AS place
    FROM task INDEXED BY task_queued
    WHERE state = 'queued' AND hand_over IS NOT NULL
      AND (not_before IS NULL OR not_before <= :now OR not_before > :latest)
      AND (after IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(task.after) a
                                        JOIN task d ON d.id = a.value WHERE d.finished_at IS NULL))
      AND owner NOT IN (SELECT owner FROM places WHERE free <= 0)
), placed AS (
    SELECT due.seq, due.owner,
           row_number() OVER (PARTITION BY due.owner ORDER BY priority DESC, due.seq) AS turn
    FROM due LEFT JOIN queue q ON q.name = due.queue
    WHERE due.queue IS NULL
       OR (NOT q.paused AND place <= q.width - (
              SELECT count(*) FROM task r
              WHERE r.queue = q.name AND r.state IN ('running', 'input_required')))
)
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM placed
                WHERE turn <= coalesce((SELECT free FROM places WHERE places.owner = placed.owner),
                                       (SELECT l.running FROM owner_limit l
                                        WHERE l.owner IN (placed.owner, '')
                                        ORDER BY l.owner = '' LIMIT 1), turn)
                UNION SELECT seq FROM task INDEXED BY task_queued
                      WHERE state = 'queued' AND hand_over IS NOT NULL AND after IS NOT NULL
                        AND NOT after_failure
                        AND EXISTS (SELECT 1 FROM json_each(task.after) a
                                    JOIN task d ON d.id = a.value
                                    WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded')
                UNION SELECT seq FROM task INDEXED BY task_stopping
                      WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0)
                        AND hand_over IS NOT NULL AND worker IS NULL)
ORDER BY t.stop_at IS NULL, t.priority DESC, t.seq LIMIT :limit;

-- name: task_next_due
-- When the next further attempt is due.
SELECT min(not_before) FROM task INDEXED BY task_queued
WHERE state = 'queued' AND hand_over IS NOT NULL AND not_before > :now;

-- name: task_waits
-- What keeps queued tasks from starting: other tasks, their time, their queue and the place in it, and
-- how many of their owner run.
WITH full_up (owner, most) AS MATERIALIZED (
    SELECT owner, most FROM (
        SELECT owner, count(*) AS running,
               (SELECT l.running FROM owner_limit l WHERE l.owner IN (r.owner, '')
                ORDER BY l.owner = '' LIMIT 1) AS most
        FROM task r INDEXED BY task_running WHERE state IN ('running', 'input_required')
        GROUP BY owner) AS counted
    WHERE running >= most
), held AS MATERIALIZED (
    SELECT t.seq, t.id, t.queue, t.priority,
           (SELECT most FROM full_up WHERE full_up.owner = t.owner) AS most,
           iif(t.not_before > :now AND t.not_before <= :latest, t.not_before, NULL) AS due,
           iif(t.after IS NULL, '[]',
               (SELECT json_group_array(d.id) FROM json_each(t.after) a
                JOIN task d ON d.id = a.value WHERE d.finished_at IS NULL)) AS others
    FROM task t INDEXED BY task_queued
    WHERE t.state = 'queued'
      AND (t.queue IS NOT NULL OR t.after IS NOT NULL OR t.not_before IS NOT NULL
           OR t.owner IN (SELECT owner FROM full_up))
), free AS MATERIALIZED (
    SELECT name, paused, width - (
               SELECT count(*) FROM task r
               WHERE r.queue = q.name AND r.state IN ('running', 'input_required')) AS places
    FROM queue q
), placed AS (
    SELECT held.*, due IS NULL AND others = '[]' AS next,
           row_number() OVER (PARTITION BY queue, due IS NULL AND others = '[]' ORDER BY priority DESC, seq) AS place
    FROM held
)
SELECT id, others, due, queue, free.paused, iif(next AND queue IS NOT NULL, place, NULL), most
FROM placed LEFT JOIN free ON free.name = placed.queue
WHERE NOT next OR most IS NOT NULL
   OR (queue IS NOT NULL AND (free.paused OR place > free.places));

-- name: tasks_claim
-- Those of many that are queued and have a place in their queue and beside others of their owner: →
-- running. How many events each has
-- now. What waited for an application has found one.
UPDATE task SET state = 'running',
                detail = iif(hand_over IS NULL, NULL, detail),
                started_at = max(:now, created_at), boot_id = w.value ->> 2,
                started_boot = w.value ->> 3, pid = w.value ->> 4, cgroup = w.value ->> 5,
                memory_cgroup = w.value ->> 6, worker = w.value ->> 7, events = events + 1
FROM (SELECT t.seq AS wanted_seq, t.queue AS wanted_queue, t.owner AS wanted_owner, c.value,
             row_number() OVER (PARTITION BY t.queue ORDER BY c.key) AS turn,
             row_number() OVER (PARTITION BY t.owner ORDER BY c.key) AS owner_turn
      FROM json_each(:wanted) c CROSS JOIN task t ON t.id = c.value ->> 0
      WHERE t.attempt = c.value ->> 1 AND t.state = 'queued') w
WHERE seq = w.wanted_seq AND (w.wanted_queue IS NULL OR EXISTS (
          SELECT 1 FROM queue q
          WHERE q.name = w.wanted_queue AND NOT q.paused AND w.turn <= q.width - (
              SELECT count(*) FROM task r
              WHERE r.queue = q.name AND r.state IN ('running', 'input_required'))))
  AND coalesce((SELECT owner_turn <= l.running - (
                    SELECT count(*) FROM task r WHERE r.owner = wanted_owner
                    AND r.state IN ('running', 'input_required'))
                FROM owner_limit l WHERE l.owner IN (wanted_owner, '')
                ORDER BY l.owner = '' LIMIT 1), true)
RETURNING events, {changed};

-- name: tasks_to_end
-- Those of many that may end as they are said to: the place in the list, whether it has asked, how
-- many events it has, and the row; the place alone where it has as many events as the caller knows of.
SELECT json_group_array(json(CASE t.events WHEN w.value ->> 3 THEN json_array(w.key) ELSE json_array(
    w.key, EXISTS (SELECT 1 FROM question q WHERE q.task = t.seq), t.events, {columns}) END))
FROM jsonb_each(:wanted) w CROSS JOIN task t ON t.id = w.value ->> 0
WHERE t.attempt = w.value ->> 1 AND t.state IN (SELECT value FROM json_each(w.value, '$[2]'));

-- name: tasks_end
-- Active states → the endings. What was noted before stays where the ending says nothing of it.
UPDATE task SET state = e.value ->> 1, finished_at = e.value ->> 2, exit_code = e.value ->> 3,
                error_kind = e.value ->> 4, error_message = e.value ->> 5,
                summary = e.value ->> 6, result = coalesce(e.value ->> 7, result),
                usage = coalesce(e.value ->> 8, usage), leftovers = e.value ->> 9,
                output_bytes = coalesce(e.value ->> 10, output_bytes),
                dropped_bytes = coalesce(e.value ->> 11, dropped_bytes), events = events + 1
FROM jsonb_each(:rows) e WHERE task.seq = e.value ->> 0;

-- name: task_request_stop
-- An active task, or one that left processes behind, is asked to end; the first request stays,
-- unless a later one is more urgent.
UPDATE task SET stop_at = coalesce(stop_at, :now),
                stop_grace_s = min(coalesce(stop_grace_s, :grace_s), :grace_s),
                events = events + 1
WHERE id = :id AND (state IN ('running', 'input_required') OR leftovers > 0)
RETURNING {changed};

-- name: task_prunable
-- Ended before a time, with nothing left running, nothing that a channel has yet to deliver, and
-- nobody who waits to hear how it ended.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.finished_at IS NOT NULL AND t.finished_at < :before AND t.leftovers = 0
  AND (t.finished_at, t.seq) > (:after, :after_seq)
  AND (:owner IS NULL OR t.owner = :owner) AND (:session IS NULL OR t.session = :session)
  AND t.id NOT IN (SELECT a.value FROM task w INDEXED BY task_queued, json_each(w.after) a
                   WHERE w.state = 'queued' AND w.after IS NOT NULL)
  AND t.seq NOT IN (SELECT d.task FROM signal d INDEXED BY signal_to_push
                    WHERE d.channel <> 'inbox' AND d.state IN ('pending', 'claimed', 'failed'))
ORDER BY t.finished_at, t.seq LIMIT :limit;

-- name: task_forget
-- Ended tasks only; events and signals go with them.
DELETE FROM task
WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at IS NOT NULL AND leftovers = 0
  AND id NOT IN (SELECT a.value FROM task w INDEXED BY task_queued, json_each(w.after) a
                 WHERE w.state = 'queued' AND w.after IS NOT NULL)
  AND seq NOT IN (SELECT d.task FROM signal d INDEXED BY signal_to_push
                  WHERE d.channel <> 'inbox' AND d.state IN ('pending', 'claimed', 'failed'))
RETURNING id;

-- name: task_unknown
-- Ids that no task has.
SELECT value FROM json_each(:ids) WHERE NOT EXISTS (SELECT 1 FROM task WHERE id = value);

-- name: signals_insert
-- For the inbox and for each channel, unless the session does not wish to hear of it or has ended,
-- and for the screen where the task itself asks for that. A channel that came later is not told of
-- what is old. `boot` and `begin` say from when on it may be told, NULL for at once.
WITH told (key, task, owner, session, kind, text, data, now, quiet, boot, begin, notify) AS (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
           value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11
    FROM jsonb_each(:signals)),
judged AS MATERIALIZED (
    SELECT told.*, CASE
        WHEN EXISTS (SELECT 1 FROM ended_session e
                     WHERE e.owner = told.owner AND e.session = told.session)
        THEN 'the session was deleted'
        WHEN EXISTS (SELECT 1 FROM wish w WHERE w.owner = told.owner AND w.session = told.session
                     AND NOT EXISTS (SELECT 1 FROM json_each(w.kinds) WHERE value = told.kind))
        THEN 'the session does not wish to be told'
        ELSE quiet END AS mute
    FROM told)
INSERT INTO signal (key, task, owner, session, kind, text, data, channel, state, reason, created_at,
                    lease_boot, lease_until)
SELECT key, task, owner, session, kind, text, data, 'inbox',
       iif(mute IS NULL, 'pending', 'dropped'), mute, now,
       iif(mute IS NULL, boot, NULL), iif(mute IS NULL, begin, NULL)
FROM judged
UNION ALL
SELECT j.key || '@' || c.name, j.task, j.owner, j.session, j.kind, j.text, j.data, c.name,
       iif(c.paused IS NULL, 'pending', 'dropped'), c.paused, j.now,
       iif(c.paused IS NULL, j.boot, NULL), iif(c.paused IS NULL, j.begin, NULL)
FROM channel c CROSS JOIN judged j
WHERE c.owner = j.owner AND (c.session IS NULL OR c.session = j.session) AND j.mute IS NULL
  AND (c.kinds IS NULL OR EXISTS (SELECT 1 FROM json_each(c.kinds) WHERE value = j.kind))
  AND NOT EXISTS (SELECT 1 FROM signal WHERE key = j.key)
UNION ALL
SELECT key || '@notify', task, owner, session, kind, text, data, 'notify', 'pending', NULL,
       now, boot, begin
FROM judged WHERE notify
ON CONFLICT (key) DO NOTHING;

-- name: signal_last
SELECT coalesce(max(seq), 0) FROM signal;

-- name: signals_after
-- What became of those that were written since, in the inbox.
SELECT json_group_object(key, state) FROM signal WHERE seq > :seq AND channel = 'inbox';

-- name: signals_of_session
-- `states` is a JSON list, empty for all.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.session = :session AND s.seq > :after
  AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
  AND (:channel IS NULL OR +s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_owner
-- The same for all sessions of an owner.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE +s.owner = :owner AND s.seq > :after
  AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
  AND (:channel IS NULL OR +s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_task
-- The same for one task.
SELECT {signal} FROM task t JOIN signal s ON s.task = t.seq
WHERE t.id = :task AND +s.owner = :owner AND (:session IS NULL OR +s.session = :session)
  AND s.seq > :after AND (:states = '[]' OR s.state IN (SELECT value FROM json_each(:states)))
  AND (:channel IS NULL OR +s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_free_in_session
-- Pending ones, ones whose time has come, and ones whose holder let the lease run out. All waits
-- are kept in boot time: they survive a clock that is set, and end with a reboot.
SELECT seq FROM signal
WHERE owner = :owner AND session = :session AND state IN ('pending', 'claimed', 'failed')
  AND +channel = 'inbox'
  AND (lease_until IS NULL OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_free_of_owner
-- The same for all sessions of an owner.
SELECT seq FROM signal
WHERE owner = :owner AND state IN ('pending', 'claimed', 'failed')
  AND +channel = 'inbox'
  AND (lease_until IS NULL OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_claim
-- Those that were found free, in the same transaction.
UPDATE signal SET state = 'claimed', consumer = :consumer, tries = tries + 1, retry_at = NULL,
                  reason = NULL, lease_boot = :boot, lease_until = :lease_until
WHERE seq IN (SELECT value FROM json_each(:seqs))
RETURNING seq, key, (SELECT id FROM task WHERE task.seq = signal.task), owner, session, kind, text,
          data, state, reason, channel, tries, created_at, delivered_at, retry_at;

-- name: signals_acknowledge
-- In the inbox by anybody whose it is; through a channel by the one who holds it.
UPDATE signal SET state = 'delivered', delivered_at = max(:now, created_at), consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL, reason = NULL
WHERE key IN (SELECT value FROM json_each(:keys)) AND +owner = :owner
  AND (:session IS NULL OR +session = :session) AND state IN ('pending', 'claimed', 'failed')
  AND iif(:consumer IS NULL, channel = 'inbox', +consumer = :consumer)
RETURNING seq;

-- name: signals_release
-- It was looked at, and not tried.
UPDATE signal SET state = 'pending', consumer = NULL, tries = max(tries - 1, 0), lease_boot = NULL,
                  lease_until = NULL
WHERE consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: deliveries_release
-- What anybody holds for a channel.
UPDATE signal SET state = 'pending', consumer = NULL, lease_boot = NULL, lease_until = NULL
WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed') AND +state = 'claimed'
RETURNING seq;

-- name: signal_failed
-- By the consumer who holds it, if one is named.
UPDATE signal SET state = 'failed', reason = :reason, retry_at = :retry_at, consumer = NULL,
                  lease_boot = :boot, lease_until = :lease_until
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
  AND (:consumer IS NULL OR +consumer = :consumer)
RETURNING seq;

-- name: signal_drop
-- By the consumer who holds it, if one is named.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
  AND (:consumer IS NULL OR +consumer = :consumer)
RETURNING seq;

-- name: signals_to_push
-- For each channel through which nothing goes at present the oldest that was never tried, else the
-- oldest that is due. Owners take turns, those first that have the fewest under way: nobody waits behind
-- all channels of another one. None for those that are passed over.
WITH RECURSIVE open_channel (owner, name) AS (
    SELECT owner, channel FROM (
        SELECT owner, channel FROM signal INDEXED BY signal_to_push
        WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel LIMIT 1) AS lowest
    UNION ALL
    SELECT s.owner, s.channel FROM open_channel o CROSS JOIN signal s ON s.seq = (
        SELECT seq FROM signal INDEXED BY signal_to_push
        WHERE (owner, channel) > (o.owner, o.name)
          AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel, seq LIMIT 1))
SELECT first FROM (
    SELECT first, under_way, row_number() OVER (PARTITION BY whose ORDER BY first) AS turn FROM (
    SELECT coalesce(
        (SELECT seq FROM signal INDEXED BY signal_to_push WHERE owner = o.owner AND channel = o.name
           AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
           AND +state = 'pending' AND lease_until IS NULL ORDER BY seq LIMIT 1),
        (SELECT seq FROM signal INDEXED BY signal_to_push WHERE owner = o.owner AND channel = o.name
           AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
           AND (lease_boot <> :boot OR lease_until <= :boot_now) ORDER BY seq LIMIT 1)) AS first,
        o.owner AS whose,
        (SELECT count(*) FROM signal c INDEXED BY signal_claimed WHERE c.state = 'claimed'
           AND +c.owner = o.owner AND +c.channel <> 'inbox'
           AND c.lease_boot = :boot AND c.lease_until > :boot_now) AS under_way
    FROM open_channel o
    WHERE o.owner NOT IN (SELECT value FROM json_each(:passing_over)) AND NOT EXISTS (SELECT 1 FROM signal c INDEXED BY signal_claimed WHERE c.state = 'claimed'
                      AND +c.owner = o.owner AND +c.channel = o.name
                      AND c.lease_boot = :boot AND c.lease_until > :boot_now)) AS oldest
    WHERE first IS NOT NULL) AS turns
WHERE turn <= :each ORDER BY under_way + turn, first LIMIT :limit;

-- name: signals_next_push
-- In boot time, when the next one can be claimed, unless what is held is over before; of owners that
-- are not passed over.
WITH RECURSIVE open_channel (owner, name) AS (
    SELECT owner, channel FROM (
        SELECT owner, channel FROM signal INDEXED BY signal_to_push
        WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel LIMIT 1) AS lowest
    UNION ALL
    SELECT s.owner, s.channel FROM open_channel o CROSS JOIN signal s ON s.seq = (
        SELECT seq FROM signal INDEXED BY signal_to_push
        WHERE (owner, channel) > (o.owner, o.name)
          AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel, seq LIMIT 1))
SELECT min(coalesce(
    (SELECT max(c.lease_until) FROM signal c INDEXED BY signal_claimed WHERE c.state = 'claimed'
       AND +c.owner = o.owner AND +c.channel = o.name
       AND c.lease_boot = :boot AND c.lease_until > :boot_now),
    (SELECT 0 FROM signal INDEXED BY signal_to_push WHERE owner = o.owner AND channel = o.name
       AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
       AND (lease_until IS NULL OR lease_boot <> :boot) LIMIT 1),
    (SELECT min(lease_until) FROM signal INDEXED BY signal_to_push WHERE owner = o.owner AND channel = o.name
       AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed'))))
FROM open_channel o WHERE o.owner NOT IN (SELECT value FROM json_each(:passing_over));

-- name: signal_resend
-- A dead letter, or one that waits for its next try, is sent now; not where its channel is gone,
-- where its session was deleted, or where it tells of a question that nobody asks any more. In the
-- inbox, what was dropped for another reason than that it was given up stays so.
UPDATE signal SET state = 'pending', reason = NULL, retry_at = NULL, tries = 0, consumer = NULL,
                  lease_boot = NULL, lease_until = NULL
WHERE key = :key AND +owner = :owner AND (:session IS NULL OR +session = :session)
  AND (state = 'failed'
       OR (state = 'dropped' AND (channel <> 'inbox' OR instr(reason, :given_up) = 1)
           AND reason <> 'the session was deleted'))
  AND NOT EXISTS (SELECT 1 FROM ended_session e
                  WHERE e.owner = signal.owner AND e.session = signal.session)
  AND (channel IN ('inbox', 'notify')
       OR EXISTS (SELECT 1 FROM channel c WHERE c.owner = signal.owner AND c.name = signal.channel
                  AND c.paused IS NULL))
  AND (kind <> 'input_required'
       OR EXISTS (SELECT 1 FROM question q JOIN task t ON t.seq = q.task
                  WHERE q.task = signal.task AND q.attempt = t.attempt AND t.finished_at IS NULL
                    AND q.answer IS NULL AND q.withdrawn = 0
                    AND instr(signal.key || '@', t.id || ':ask:' || q.attempt || ':' || q.id || '@')
                        = 1))
RETURNING seq;

-- name: signal_answered
-- Nobody needs to be told of a question that is no longer open.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL
WHERE task = :task AND (key = :key OR substr(key, 1, length(:key) + 1) = :key || '@')
  AND state IN ('pending', 'claimed', 'failed');

-- name: question_ask
-- The same question again, after a crash of ours, is there already.
INSERT INTO question (task, attempt, id, text, asked_at, schema, approval, asker, grace_s)
VALUES (:task, :attempt, :id, :text, :now, :schema, :asker IS NOT NULL, :asker, :grace_s)
ON CONFLICT (task, attempt, id) DO NOTHING
RETURNING seq;

-- name: question_answer
-- The question of this id, or the oldest open one of its own.
UPDATE question SET answer = :answer, answered_at = :now
WHERE seq = (SELECT q.seq FROM question q JOIN task t ON t.seq = q.task
             WHERE q.task = :task AND q.attempt = t.attempt AND q.answer IS NULL
               AND q.withdrawn = 0 AND iif(:id IS NULL, q.approval = 0, q.id = :id)
             ORDER BY q.seq LIMIT 1)
RETURNING id, grace_s;

-- name: question_withdraw
UPDATE question SET withdrawn = 1
WHERE task = :task AND attempt = :attempt AND id = :id AND answer IS NULL AND withdrawn = 0
RETURNING id, approval;

-- name: question_handed_on
UPDATE question SET handed_on = 1
WHERE task = (SELECT seq FROM task WHERE id = :task) AND attempt = :attempt AND id = :id
  AND answer IS NOT NULL AND handed_on = 0
RETURNING id;

-- name: questions_answered
-- Answers that have not reached their jobs; those about a job are not for it.
SELECT {question} FROM question q JOIN task t ON t.seq = q.task
WHERE q.answer IS NOT NULL AND q.handed_on = 0 AND q.attempt = t.attempt AND q.approval = 0
  AND t.state IN ('running', 'input_required');

-- name: task_is_answered
-- input_required → running when no question is open any more.
UPDATE task SET events = events + 1,
                state = iif(EXISTS (SELECT 1 FROM question q WHERE q.task = task.seq
                                    AND q.attempt = task.attempt AND q.approval = 0
                                    AND q.answer IS NULL AND q.withdrawn = 0),
                            'input_required', 'running')
WHERE id = :id AND attempt = :attempt AND state = 'input_required'
RETURNING {changed};

-- name: signals_renew
-- Whoever holds them is still at it.
UPDATE signal SET lease_boot = :boot, lease_until = :lease_until
WHERE key IN (SELECT value FROM json_each(:keys)) AND consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: signals_postpone
-- Later, and this was no try.
UPDATE signal SET state = 'pending', consumer = NULL, tries = max(tries - 1, 0),
                  lease_boot = :boot, lease_until = :from
WHERE key IN (SELECT value FROM json_each(:keys)) AND consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: activity_replace
-- The latest status of a task takes the place of one that nobody was told yet.
UPDATE signal SET text = :text, data = :data
WHERE task = :task AND kind = 'message' AND state = 'pending' AND instr(key, :prefix) = 1;

-- name: activity_last
-- When the session was last told of a status, and what became of that.
SELECT state, max(created_at, coalesce(delivered_at, 0)) FROM signal
WHERE task = :task AND kind = 'message' AND channel = 'inbox' AND instr(key, :prefix) = 1
ORDER BY seq DESC LIMIT 1;

-- name: activity_is_over
-- The end says more than the last status before it.
UPDATE signal SET state = 'dropped', reason = 'the task has ended', lease_boot = NULL,
                  lease_until = NULL
WHERE task = :task AND kind = 'message' AND state = 'pending' AND instr(key, :prefix) = 1;

-- name: channel_pause
-- With the reason, or NULL to go on. Nothing where that is so already.
UPDATE channel SET paused = :reason
WHERE owner = :owner AND name = :name AND (paused IS NULL) = (:reason IS NOT NULL)
RETURNING name;

-- name: channel_drop_signals
-- What a channel that is gone or paused was to deliver.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL
WHERE channel = :name AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
  AND +owner = :owner;

-- name: tasks_before_create
-- What has to be known before many are made: which of the ids are taken, how many are active of each
-- sort (as `task_count_active` counts them), and the queues.
SELECT (SELECT json_group_array(t.id) FROM json_each(:ids) w CROSS JOIN task t ON t.id = w.value),
       (SELECT json_group_array((
            SELECT count(*) FROM task
            WHERE owner = s.value ->> 0 AND session = s.value ->> 1 AND kind = s.value ->> 2
              AND state IN ('queued', 'running', 'input_required')
              AND NOT (state = 'queued' AND schedule IS NOT NULL AND after IS NOT NULL)
              AND parked_at IS NULL
              AND (queue IS NOT NULL AND state = 'queued') = (s.value ->> 3)))
        FROM jsonb_each(:sorts) s),
       (SELECT json_group_array(name) FROM (SELECT name FROM queue ORDER BY name));

-- name: tasks_insert
-- Tasks that have not started, or that could not; nothing of those whose ids are taken.
INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, max_runtime_s,
                  parent, schedule, hand_over, queue, after, after_failure, retries_left, priority,
                  detail, events)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 'queued',
       value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12,
       value ->> 13, value ->> 14, value ->> 15, value ->> 16, 1
FROM jsonb_each(:rows) WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING {changed};

-- name: tasks_before_begin
-- What has to be known before many begin: the last number, which of the ids are taken, and how many
-- are active of each sort, and of each owner what may run and what does. Parked calls are counted
-- apart from runs that were meant to go on.
SELECT (SELECT coalesce(max(seq), 0) FROM task),
       (SELECT json_group_array(t.id) FROM json_each(:ids) w CROSS JOIN task t ON t.id = w.value),
       (SELECT json_group_array((
            SELECT count(*) FROM task
            WHERE owner = s.value ->> 0 AND session = s.value ->> 1 AND kind = s.value ->> 2
              AND state IN ('queued', 'running', 'input_required')
              AND NOT (state = 'queued' AND schedule IS NOT NULL AND after IS NOT NULL)
              AND (parked_at IS NOT NULL) = (s.value ->> 3)))
        FROM jsonb_each(:sorts) s),
       (SELECT json_group_array(json_array(
            (SELECT l.running FROM owner_limit l WHERE l.owner IN (o.value ->> 0, '')
             ORDER BY l.owner = '' LIMIT 1),
            (SELECT count(*) FROM task WHERE owner = o.value ->> 0
             AND state IN ('running', 'input_required'))))
        FROM jsonb_each(:owners) o);

-- name: tasks_begin
-- Tasks that run from the start in the process that writes them.
INSERT INTO task (seq, id, owner, session, kind, title, spec, created_at, started_at, max_runtime_s,
                  parent, schedule, boot_id, started_boot, pid, worker, parked_at, priority, state,
                  events)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
       value ->> 7, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11,
       value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, 'running', 2
FROM jsonb_each(:rows);

-- name: events_insert
-- The changes that they tell of have raised the counts in the tasks' rows.
INSERT INTO event (task, number, at, kind, data)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(:rows);

-- name: workers
-- Those that are registered, and those that tasks name though they are not.
SELECT id, boot_id, pid, hand_over FROM worker
UNION ALL
SELECT DISTINCT worker, boot_id, pid, NULL FROM task INDEXED BY task_of_worker
WHERE worker IS NOT NULL AND state IN ('running', 'input_required')
  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = task.worker);

-- name: tasks_to_stop_of_worker
-- What somebody wants it to end.
SELECT id, stop_at, stop_grace_s FROM task INDEXED BY task_stopping
WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0)
  AND worker = :worker AND state IN ('running', 'input_required');

-- name: tasks_for_applications
-- What waits for an application that has the tool or the agent.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.state = 'queued' AND t.kind IN ('tool', 'agent') AND t.hand_over IS NULL
  AND (t.after IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(t.after) a
                                      JOIN task d ON d.id = a.value WHERE d.finished_at IS NULL))
ORDER BY t.priority DESC, t.seq LIMIT :limit;

-- name: schedule_find
-- By the beginning of the id.
SELECT {schedule} FROM schedule
WHERE id >= :prefix AND id < :prefix || '~' AND +owner = :owner
  AND (:session IS NULL OR +session = :session)
ORDER BY seq DESC LIMIT :limit;

-- name: schedules
-- Of one session, or of all of an owner; `states` is a JSON list, empty for all.
SELECT {schedule} FROM schedule
WHERE owner = :owner AND (:session IS NULL OR session = :session)
  AND (:states = '[]' OR state IN (SELECT value FROM json_each(:states)))
ORDER BY seq;

-- name: schedule_move
-- On to the next firing, by whoever has seen the present one as it is; the last one ends it.
UPDATE schedule SET next_at = :next_at, due_at = :due_at, last_at = :last_at, detail = NULL,
                    state = iif(:next_at IS NULL, 'done', 'active'),
                    ended_at = iif(:next_at IS NULL, :now, NULL)
WHERE id = :id AND state = 'active' AND next_at = :expected
RETURNING {schedule};

-- name: schedule_put_off
-- The same firing later, and why.
UPDATE schedule SET due_at = max(next_at, :due_at), detail = :detail
WHERE id = :id AND state = 'active' AND next_at = :expected
RETURNING id;

-- name: schedule_active_tasks
-- Tasks of earlier firings that have not ended, oldest first.
SELECT id FROM task INDEXED BY task_of_schedule
WHERE schedule = :schedule AND state IN ('queued', 'running', 'input_required') ORDER BY seq;

-- name: schedule_pause
UPDATE schedule SET state = 'paused', next_at = NULL, due_at = NULL, detail = :detail
WHERE id = :id AND owner = :owner AND (:session IS NULL OR session = :session) AND state = 'active'
RETURNING {schedule};

-- name: schedule_resume
UPDATE schedule SET state = 'active', next_at = :next_at, due_at = :due_at, detail = NULL
WHERE id = :id AND owner = :owner AND (:session IS NULL OR session = :session) AND state = 'paused'
RETURNING {schedule};

-- name: schedule_cancel
UPDATE schedule SET state = 'canceled', next_at = NULL, due_at = NULL, ended_at = :now
WHERE id = :id AND owner = :owner AND (:session IS NULL OR session = :session)
  AND state IN ('active', 'paused')
RETURNING {schedule};

-- name: token_insert
-- Not in trade for one that was revoked meanwhile.
INSERT INTO token (id, owner, role, session, label, parent, digest, created_at, expires_at)
SELECT :id, :owner, :role, :session, :label, :parent, :digest, :created_at, :expires_at
WHERE :parent IS NULL OR EXISTS (SELECT 1 FROM token WHERE id = :parent AND revoked_at IS NULL)
RETURNING id;

-- name: token_used
UPDATE token SET last_used_at = max(coalesce(last_used_at, 0), :at) WHERE id = :id RETURNING id;

-- name: tokens_forget
-- Those that have opened nothing for a while.
DELETE FROM token WHERE min(coalesce(revoked_at, expires_at), coalesce(expires_at, revoked_at)) < :before
RETURNING id;

-- name: task_children
-- What a task has started itself, and what lives in the session that bears its name; newest first.
SELECT {task} FROM task t LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task WHERE parent = :parent
                UNION SELECT seq FROM task WHERE owner = :owner AND session = :parent)
  AND +t.owner = :owner AND (:session IS NULL OR +t.session = :session)
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_ended_since
-- What has ended since a time, the last one first, without results.
SELECT {light} FROM task t INDEXED BY task_by_end LEFT JOIN signal s ON s.key = t.id || ':end'
WHERE t.finished_at >= :since AND t.owner = :owner AND (:session IS NULL OR t.session = :session)
ORDER BY t.finished_at DESC, t.seq DESC LIMIT :limit;

-- name: session_counts
-- The sessions of an owner by what their tasks are at present: of all that have not ended, and of the
-- newest of the others. `agent` is the task whose session it is, where it is a sub-agent's own.
WITH looked_at AS (
    SELECT seq, session, state, created_at FROM (
        SELECT seq, session, state, created_at FROM task
        WHERE owner = :owner AND (:session IS NULL OR session = :session)
        ORDER BY seq DESC LIMIT :limit)
    UNION
    SELECT seq, session, state, created_at FROM task INDEXED BY task_active
    WHERE state IN ('queued', 'running', 'input_required') AND owner = :owner
      AND (:session IS NULL OR session = :session))
SELECT l.session, l.state, count(*), max(l.created_at),
       (SELECT a.id FROM task a WHERE a.id = l.session AND a.owner = :owner AND a.kind = 'agent')
FROM looked_at l GROUP BY l.session, l.state ORDER BY l.session, l.state;

-- name: signals_newest_of_session
-- The newest signals of one session; `states` is a JSON list, empty for all.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.session = :session AND s.seq < :before
  AND (:states = '[]' OR +s.state IN (SELECT value FROM json_each(:states)))
  AND (:channel IS NULL OR +s.channel = :channel)
ORDER BY s.seq DESC LIMIT :limit;

-- name: signals_newest_of_owner
-- The same for all sessions of an owner.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE +s.owner = :owner AND s.seq < :before
  AND (:states = '[]' OR +s.state IN (SELECT value FROM json_each(:states)))
  AND (:channel IS NULL OR +s.channel = :channel)
ORDER BY s.seq DESC LIMIT :limit;
