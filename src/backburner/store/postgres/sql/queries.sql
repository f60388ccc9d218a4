-- The statements that are PostgreSQL's own, by name; the others are in store/record/sql, which says
-- how to read them.
-- A value with :: and [] is a list, one with ::jsonb has a list for each of many; what is looked up by
-- it is taken apart first, because under a policy no index is asked with an expression. One writer at a
-- time: what is read here cannot change before the commit, so that no statement locks a row.

-- name: task_find
-- Tasks by the beginning of their id.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.id >= :prefix AND t.id < :prefix || '~' AND t.owner = :owner
  AND (:session::text IS NULL OR t.session = :session)
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_of_session
-- The newest tasks of one session; `states` is a JSON list, empty for all.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.owner = :owner AND t.session = :session AND t.seq < :before
  AND (cardinality(:states::text[]) = 0 OR t.state = ANY(:states::text[]))
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_of_owner
-- The newest tasks of all sessions of an owner.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.owner = :owner AND t.seq < :before
  AND (cardinality(:states::text[]) = 0 OR t.state = ANY(:states::text[]))
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_newest_active
-- The newest tasks that have not ended, of one session or of all of an owner.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.state IN ('queued', 'running', 'input_required') AND t.owner = :owner
  AND (:session::text IS NULL OR t.session = :session) AND t.seq < :before
  AND t.state = ANY(:states::text[])
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_active
-- Everything that has not ended, and everything that left processes behind.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task
                WHERE state IN ('queued', 'running', 'input_required')
                UNION SELECT seq FROM task WHERE leftovers > 0)
  AND (:kind::text IS NULL OR t.kind = :kind)
ORDER BY t.seq;

-- name: task_outlived_agents
-- Agents that have ended, and something in the sessions that bear their names has not. From one session
-- to the next, because it is asked again and again, and a session may have any number of tasks.
WITH RECURSIVE walk (owner, session) AS (
    (SELECT owner, session FROM task WHERE state IN ('queued', 'running', 'input_required')
     ORDER BY owner, session LIMIT 1)
    UNION ALL
    SELECT n.owner, n.session FROM walk w CROSS JOIN LATERAL (
        SELECT owner, session FROM task
        WHERE state IN ('queued', 'running', 'input_required')
          AND (owner, session) > (w.owner, w.session)
        ORDER BY owner, session LIMIT 1) n)
SELECT {task} FROM walk w CROSS JOIN LATERAL (
    SELECT * FROM task a WHERE a.id = w.session AND a.owner = w.owner
                           AND a.kind = 'agent' AND a.finished_at IS NOT NULL LIMIT 1) t
LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
ORDER BY t.seq;

-- name: task_kept
-- Everything of that which the keeper looks after: processes, and not what applications carry out.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task
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
    FROM task r WHERE state IN ('running', 'input_required')
    GROUP BY owner
), due AS (
    SELECT seq, owner, priority, queue,
           row_number() OVER (PARTITION BY queue ORDER BY priority DESC, seq) AS place
    FROM task
    WHERE state = 'queued' AND hand_over IS NOT NULL
      AND (not_before IS NULL OR not_before <= :now OR not_before > :latest)
      AND (after IS NULL OR NOT EXISTS (SELECT 1 FROM json_array_elements_text(task.after::json) a (id)
                                        JOIN task d ON d.id = a.id WHERE d.finished_at IS NULL))
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
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM placed
                WHERE turn <= coalesce((SELECT free FROM places WHERE places.owner = placed.owner),
                                       (SELECT l.running FROM owner_limit l
                                        WHERE l.owner IN (placed.owner, '')
                                        ORDER BY l.owner = '' LIMIT 1), turn)
                UNION SELECT seq FROM task
                      WHERE state = 'queued' AND hand_over IS NOT NULL AND after IS NOT NULL
                        AND NOT after_failure
                        AND EXISTS (SELECT 1 FROM json_array_elements_text(task.after::json) a (id)
                                    JOIN task d ON d.id = a.id
                                    WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded')
                UNION SELECT seq FROM task
                      WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0)
                        AND hand_over IS NOT NULL AND worker IS NULL)
ORDER BY t.stop_at IS NULL, t.priority DESC, t.seq LIMIT :limit;

-- name: task_next_due
-- When the next further attempt is due.
SELECT min(not_before) FROM task
WHERE held AND state = 'queued' AND not_before IS NOT NULL AND not_before > :now;

-- name: task_due
-- Whether something waits for a time that has come.
SELECT 1 FROM task WHERE held AND state = 'queued' AND not_before <= :now LIMIT 1;

-- name: task_waits
-- What keeps queued tasks from starting: other tasks, their time, their queue and the place in it, and
-- how many of their owner run.
WITH full_up (owner, most) AS MATERIALIZED (
    SELECT owner, most FROM (
        SELECT owner, count(*) AS running,
               (SELECT l.running FROM owner_limit l WHERE l.owner IN (r.owner, '')
                ORDER BY l.owner = '' LIMIT 1) AS most
        FROM task r WHERE state IN ('running', 'input_required')
        GROUP BY owner) AS counted
    WHERE running >= most
), held AS MATERIALIZED (
    SELECT t.seq, t.id, t.queue, t.priority,
           (SELECT most FROM full_up WHERE full_up.owner = t.owner) AS most,
           CASE WHEN t.not_before > :now AND t.not_before <= :latest THEN t.not_before END AS due,
           coalesce((SELECT json_agg(d.id)::text FROM json_array_elements_text(t.after::json) a (id)
                     JOIN task d ON d.id = a.id WHERE d.finished_at IS NULL), '[]') AS others
    FROM task t
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
SELECT id, others, due, queue, free.paused, CASE WHEN next AND queue IS NOT NULL THEN place END, most
FROM placed LEFT JOIN free ON free.name = placed.queue
WHERE NOT next OR most IS NOT NULL
   OR (queue IS NOT NULL AND (free.paused OR place > free.places));

-- name: tasks_unserved
-- Which of these wait in a queue that no worker takes from that lives.
SELECT t.id, coalesce(t.queue, t.route) FROM task t
WHERE t.id = ANY(:ids::text[]) AND t.state = 'queued' AND t.node IS NULL
  AND strpos(t.route, ':') = 0  -- what waits for a tool, an agent or a machine says so itself
  AND {unserved};

-- name: tasks_claim
-- How many events each has now.
SELECT events, {changed} FROM claim_tasks(:now, :wanted::jsonb);

-- name: tasks_claimed
-- Those that were begun just so: who asked for it has lost the connection before it was answered.
SELECT t.events, {columns}, NULL, NULL, NULL, NULL
FROM jsonb_array_elements(:wanted::jsonb) w (value) JOIN task t ON t.id = w.value ->> 0
WHERE t.attempt = (w.value ->> 1)::bigint AND t.state = 'running' AND t.boot_id = w.value ->> 2
  AND t.started_boot = (w.value ->> 3)::bigint
  AND t.pid IS NOT DISTINCT FROM (w.value ->> 4)::bigint
  AND (w.value ->> 8 IS NULL OR t.node = w.value ->> 8);

-- name: claim_at_once
SELECT events, {changed} FROM claim_at_once(:known, :notice, :now, :wanted::jsonb);

-- name: create_at_once
SELECT {changed} FROM create_at_once(:known, :notice, :now, :owner, :rows::jsonb, :sorts::jsonb, :name,
                                     :latest, :reserve);

-- name: tasks_to_end
-- Those of many that may end as they are said to: the place in the list, whether it has asked, how
-- many events it has, and the row.
WITH w AS MATERIALIZED (
    SELECT place, value ->> 0 AS id, (value ->> 1)::bigint AS attempt, value -> 2 AS states,
           value ->> 4 AS node
    FROM jsonb_array_elements(:wanted::jsonb) WITH ORDINALITY given (value, place))
SELECT w.place - 1, EXISTS (SELECT 1 FROM question q WHERE q.task = t.seq), t.events, {columns}
FROM w JOIN task t ON t.id = w.id
WHERE t.attempt = w.attempt AND w.states ? t.state AND (w.node IS NULL OR t.node = w.node)
ORDER BY w.place;

-- name: tasks_end
-- Active states → the endings. What was noted before stays where the ending says nothing of it. Not 0
-- where the engine may have a job of it that nobody has fetched.
WITH e AS MATERIALIZED (
    SELECT (value ->> 0)::bigint AS seq, value FROM jsonb_array_elements(:rows::jsonb) given (value))
UPDATE task SET state = e.value ->> 1, finished_at = (e.value ->> 2)::bigint,
                exit_code = (e.value ->> 3)::bigint, error_kind = e.value ->> 4,
                error_message = e.value ->> 5, summary = e.value ->> 6,
                result = coalesce(e.value ->> 7, task.result),
                usage = coalesce(e.value ->> 8, task.usage), leftovers = (e.value ->> 9)::bigint,
                output_bytes = coalesce((e.value ->> 10)::bigint, task.output_bytes),
                dropped_bytes = coalesce((e.value ->> 11)::bigint, task.dropped_bytes),
                events = events + 1
FROM e WHERE task.seq = e.seq
RETURNING task.id, task.attempt, CASE WHEN task.node IS NULL OR task.attempt > 1 THEN task.let_in ELSE 0 END;

-- name: task_request_stop
-- An active task, or one that left processes behind, is asked to end; the first request stays,
-- unless a later one is more urgent.
UPDATE task SET stop_at = coalesce(stop_at, :now),
                stop_grace_s = least(stop_grace_s, :grace_s),
                events = events + 1
WHERE id = :id AND (state IN ('running', 'input_required') OR leftovers > 0)
RETURNING {changed};

-- name: task_prunable
-- Ended before a time, with nothing left running, nothing that a channel has yet to deliver, and
-- nobody who waits to hear how it ended.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.finished_at IS NOT NULL AND t.finished_at < :before AND t.leftovers = 0
  AND (t.finished_at, t.seq) > (:after, :after_seq)
  AND (:owner::text IS NULL OR t.owner = :owner) AND (:session::text IS NULL OR t.session = :session)
  AND t.id NOT IN (SELECT a.id FROM task w, json_array_elements_text(w.after::json) a (id)
                   WHERE w.state = 'queued' AND w.after IS NOT NULL)
  AND t.seq NOT IN (SELECT d.task FROM signal d
                    WHERE d.channel <> 'inbox' AND d.state IN ('pending', 'claimed', 'failed'))
ORDER BY t.finished_at, t.seq LIMIT :limit;

-- name: task_forget
-- Ended tasks only; events and signals go with them.
DELETE FROM task
WHERE id = ANY(:ids::text[]) AND finished_at IS NOT NULL AND leftovers = 0
  AND id NOT IN (SELECT a.id FROM task w, json_array_elements_text(w.after::json) a (id)
                 WHERE w.state = 'queued' AND w.after IS NOT NULL)
  AND seq NOT IN (SELECT d.task FROM signal d
                  WHERE d.channel <> 'inbox' AND d.state IN ('pending', 'claimed', 'failed'))
RETURNING id;

-- name: task_unknown
-- Ids that no task has.
SELECT value FROM unnest(:ids::text[]) AS given (value)
WHERE NOT EXISTS (SELECT 1 FROM task WHERE id = value);

-- name: events_insert
-- The changes that they tell of have raised the counts in the tasks' rows.
INSERT INTO event (task, number, at, kind, data)
SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint, value ->> 3, value ->> 4
FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY given (value, place) ORDER BY place;

-- name: signals_insert
-- For the inbox and for each channel, unless the session does not wish to hear of it or has ended,
-- and for the screen where the task itself asks for that. A channel that came later is not told of
-- what is old. `boot` and `begin` say from when on it may be told, NULL for at once.
WITH told AS (
    SELECT place, value ->> 0 AS key, (value ->> 1)::bigint AS task, value ->> 2 AS owner,
           value ->> 3 AS session, value ->> 4 AS kind, value ->> 5 AS text, value ->> 6 AS data,
           (value ->> 7)::bigint AS now, value ->> 8 AS quiet, value ->> 9 AS boot,
           (value ->> 10)::bigint AS begin, (value ->> 11)::boolean AS notify
    FROM jsonb_array_elements(:signals::jsonb) WITH ORDINALITY given (value, place)),
judged AS MATERIALIZED (
    SELECT told.*, CASE
        WHEN EXISTS (SELECT 1 FROM ended_session e
                     WHERE e.owner = told.owner AND e.session = told.session)
        THEN 'the session was deleted'
        WHEN EXISTS (SELECT 1 FROM wish w WHERE w.owner = told.owner AND w.session = told.session
                     AND NOT w.kinds::jsonb ? told.kind)
        THEN 'the session does not wish to be told'
        ELSE quiet END AS mute
    FROM told),
meant AS (
    SELECT place, 0 AS part, key, task, owner, session, kind, text, data, 'inbox' AS channel,
           mute AS reason, now, boot, begin
    FROM judged
    UNION ALL
    SELECT j.place, 1, j.key || '@' || c.name, j.task, j.owner, j.session, j.kind, j.text, j.data,
           c.name, c.paused, j.now, j.boot, j.begin
    FROM channel c JOIN judged j ON c.owner = j.owner AND (c.session IS NULL OR c.session = j.session)
    WHERE j.mute IS NULL AND (c.kinds IS NULL OR c.kinds::jsonb ? j.kind)
      AND NOT EXISTS (SELECT 1 FROM signal WHERE key = j.key)
    UNION ALL
    SELECT place, 2, key || '@notify', task, owner, session, kind, text, data, 'notify', NULL, now,
           boot, begin
    FROM judged WHERE notify)
INSERT INTO signal (key, task, owner, session, kind, text, data, channel, state, reason, created_at,
                    lease_boot, lease_until)
SELECT key, task, owner, session, kind, text, data, channel,
       CASE WHEN reason IS NULL THEN 'pending' ELSE 'dropped' END, reason, now,
       CASE WHEN reason IS NULL THEN boot END, CASE WHEN reason IS NULL THEN begin END
FROM meant ORDER BY part, place
ON CONFLICT (key) DO NOTHING
RETURNING key, state, channel;

-- name: signals_of_session
-- `states` is a JSON list, empty for all.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.session = :session AND s.seq > :after
  AND (cardinality(:states::text[]) = 0 OR s.state = ANY(:states::text[]))
  AND (:channel::text IS NULL OR s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_owner
-- The same for all sessions of an owner.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.seq > :after
  AND (cardinality(:states::text[]) = 0 OR s.state = ANY(:states::text[]))
  AND (:channel::text IS NULL OR s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_of_task
-- The same for one task.
SELECT {signal} FROM task t JOIN signal s ON s.task = t.seq
WHERE t.id = :task AND s.owner = :owner AND (:session::text IS NULL OR s.session = :session)
  AND s.seq > :after AND (cardinality(:states::text[]) = 0 OR s.state = ANY(:states::text[]))
  AND (:channel::text IS NULL OR s.channel = :channel)
ORDER BY s.seq LIMIT :limit;

-- name: signals_free_in_session
-- Pending ones, ones whose time has come, and ones whose holder let the lease run out. All waits
-- are kept in boot time: they survive a clock that is set, and end with a reboot.
SELECT seq FROM signal
WHERE owner = :owner AND session = :session AND state IN ('pending', 'claimed', 'failed')
  AND channel = 'inbox'
  AND (lease_until IS NULL OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_free_of_owner
-- The same for all sessions of an owner.
SELECT seq FROM signal
WHERE owner = :owner AND state IN ('pending', 'claimed', 'failed')
  AND channel = 'inbox'
  AND (lease_until IS NULL OR lease_boot <> :boot OR lease_until <= :boot_now)
ORDER BY seq LIMIT :limit;

-- name: signals_claim
-- Those that were found free, in the same transaction.
UPDATE signal SET state = 'claimed', consumer = :consumer, tries = tries + 1, retry_at = NULL,
                  reason = NULL, lease_boot = :boot, lease_until = :lease_until
WHERE seq = ANY(:seqs::bigint[])
RETURNING seq, key, (SELECT id FROM task WHERE task.seq = signal.task), owner, session, kind, text,
          data, state, reason, channel, tries, created_at, delivered_at, retry_at;

-- name: signals_acknowledge
-- In the inbox by anybody whose it is; through a channel by the one who holds it.
UPDATE signal SET state = 'delivered', delivered_at = greatest(:now, created_at), consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL, reason = NULL
WHERE key = ANY(:keys::text[]) AND owner = :owner
  AND (:session::text IS NULL OR session = :session) AND state IN ('pending', 'claimed', 'failed')
  AND CASE WHEN :consumer::text IS NULL THEN channel = 'inbox' ELSE consumer = :consumer END
RETURNING channel;

-- name: signals_release
-- It was looked at, and not tried.
UPDATE signal SET state = 'pending', consumer = NULL, tries = greatest(tries - 1, 0), lease_boot = NULL,
                  lease_until = NULL
WHERE consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: deliveries_release
-- What anybody holds for a channel.
UPDATE signal SET state = 'pending', consumer = NULL, lease_boot = NULL, lease_until = NULL
WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed') AND state = 'claimed'
RETURNING seq;

-- name: signal_failed
-- By the consumer who holds it, if one is named.
UPDATE signal SET state = 'failed', reason = :reason, retry_at = :retry_at, consumer = NULL,
                  lease_boot = :boot, lease_until = :lease_until
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
  AND (:consumer::text IS NULL OR consumer = :consumer)
RETURNING seq;

-- name: signal_drop
-- By the consumer who holds it, if one is named.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL
WHERE key = :key AND state IN ('pending', 'claimed', 'failed')
  AND (:consumer::text IS NULL OR consumer = :consumer)
RETURNING seq;

-- name: signals_to_push
-- For each channel through which nothing goes at present the oldest that was never tried, else the
-- oldest that is due. Owners take turns, those first that have the fewest under way: nobody waits behind
-- all channels of another one. None for those that are passed over.
WITH RECURSIVE open_channel (owner, name) AS (
    SELECT owner, channel FROM (
        SELECT owner, channel FROM signal
        WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel LIMIT 1) AS lowest
    UNION ALL
    SELECT s.owner, s.channel FROM open_channel o JOIN signal s ON s.seq = (
        SELECT seq FROM signal
        WHERE (owner, channel) > (o.owner, o.name)
          AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel, seq LIMIT 1))
SELECT first FROM (
    SELECT first, under_way, row_number() OVER (PARTITION BY whose ORDER BY first) AS turn FROM (
    SELECT coalesce(
        (SELECT seq FROM signal WHERE owner = o.owner AND channel = o.name
           AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
           AND state = 'pending' AND lease_until IS NULL ORDER BY seq LIMIT 1),
        (SELECT seq FROM signal WHERE owner = o.owner AND channel = o.name
           AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
           AND (lease_boot <> :boot OR lease_until <= :boot_now) ORDER BY seq LIMIT 1)) AS first,
        o.owner AS whose,
        (SELECT count(*) FROM signal c WHERE c.state = 'claimed'
           AND c.owner = o.owner AND c.channel <> 'inbox'
           AND c.lease_boot = :boot AND c.lease_until > :boot_now) AS under_way
    FROM open_channel o
    WHERE o.owner <> ALL(:passing_over::text[]) AND NOT EXISTS (SELECT 1 FROM signal c WHERE c.state = 'claimed'
                      AND c.owner = o.owner AND c.channel = o.name
                      AND c.lease_boot = :boot AND c.lease_until > :boot_now)) AS oldest
    WHERE first IS NOT NULL) AS turns
WHERE turn <= :each ORDER BY under_way + turn, first LIMIT :limit;

-- name: signals_next_push
-- In boot time, when the next one can be claimed, unless what is held is over before; of owners that
-- are not passed over.
WITH RECURSIVE open_channel (owner, name) AS (
    SELECT owner, channel FROM (
        SELECT owner, channel FROM signal
        WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel LIMIT 1) AS lowest
    UNION ALL
    SELECT s.owner, s.channel FROM open_channel o JOIN signal s ON s.seq = (
        SELECT seq FROM signal
        WHERE (owner, channel) > (o.owner, o.name)
          AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
        ORDER BY owner, channel, seq LIMIT 1))
SELECT min(coalesce(
    (SELECT max(c.lease_until) FROM signal c WHERE c.state = 'claimed'
       AND c.owner = o.owner AND c.channel = o.name
       AND c.lease_boot = :boot AND c.lease_until > :boot_now),
    (SELECT 0 FROM signal WHERE owner = o.owner AND channel = o.name
       AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
       AND (lease_until IS NULL OR lease_boot <> :boot) LIMIT 1),
    (SELECT min(lease_until) FROM signal WHERE owner = o.owner AND channel = o.name
       AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed'))))
FROM open_channel o WHERE o.owner <> ALL(:passing_over::text[]);

-- name: signal_resend
-- A dead letter, or one that waits for its next try, is sent now; not where its channel is gone,
-- where its session was deleted, or where it tells of a question that nobody asks any more. In the
-- inbox, what was dropped for another reason than that it was given up stays so.
UPDATE signal SET state = 'pending', reason = NULL, retry_at = NULL, tries = 0, consumer = NULL,
                  lease_boot = NULL, lease_until = NULL
WHERE key = :key AND owner = :owner AND (:session::text IS NULL OR session = :session)
  AND (state = 'failed'
       OR (state = 'dropped' AND (channel <> 'inbox' OR starts_with(reason, :given_up))
           AND reason <> 'the session was deleted'))
  AND NOT EXISTS (SELECT 1 FROM ended_session e
                  WHERE e.owner = signal.owner AND e.session = signal.session)
  AND (channel IN ('inbox', 'notify')
       OR EXISTS (SELECT 1 FROM channel c WHERE c.owner = signal.owner AND c.name = signal.channel
                  AND c.paused IS NULL))
  AND (kind <> 'input_required'
       OR EXISTS (SELECT 1 FROM question q JOIN task t ON t.seq = q.task
                  WHERE q.task = signal.task AND q.attempt = t.attempt AND t.finished_at IS NULL
                    AND q.answer IS NULL AND NOT q.withdrawn
                    AND starts_with(signal.key || '@',
                                    t.id || ':ask:' || q.attempt || ':' || q.id || '@')))
RETURNING seq;

-- name: signal_answered
-- Nobody needs to be told of a question that is no longer open.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL
WHERE task = :task AND (key = :key OR starts_with(key, :key || '@'))
  AND state IN ('pending', 'claimed', 'failed');

-- name: question_ask
-- The same question again, after a crash of ours, is there already.
INSERT INTO question (task, attempt, id, text, asked_at, schema, approval, asker, grace_s)
VALUES (:task, :attempt, :id, :text, :now, :schema, :asker::text IS NOT NULL, :asker, :grace_s)
ON CONFLICT (task, attempt, id) DO NOTHING
RETURNING seq;

-- name: question_answer
-- The question of this id, or the oldest open one of its own.
UPDATE question SET answer = :answer, answered_at = :now
WHERE seq = (SELECT q.seq FROM question q JOIN task t ON t.seq = q.task
             WHERE q.task = :task AND q.attempt = t.attempt AND q.answer IS NULL
               AND NOT q.withdrawn AND CASE WHEN :id::text IS NULL THEN NOT q.approval ELSE q.id = :id END
             ORDER BY q.seq LIMIT 1)
RETURNING id, grace_s;

-- name: question_withdraw
UPDATE question SET withdrawn = true
WHERE task = :task AND attempt = :attempt AND id = :id AND answer IS NULL AND NOT withdrawn
RETURNING id, approval;

-- name: question_handed_on
UPDATE question SET handed_on = true
WHERE task = (SELECT seq FROM task WHERE id = :task) AND attempt = :attempt AND id = :id
  AND answer IS NOT NULL AND NOT handed_on
RETURNING id;

-- name: questions_answered
-- Answers that have not reached their jobs; those about a job are not for it.
SELECT {question} FROM question q JOIN task t ON t.seq = q.task
WHERE q.answer IS NOT NULL AND NOT q.handed_on AND q.attempt = t.attempt AND NOT q.approval
  AND t.state IN ('running', 'input_required');

-- name: task_is_answered
-- input_required → running when no question is open any more.
UPDATE task SET events = events + 1,
                state = CASE WHEN EXISTS (SELECT 1 FROM question q WHERE q.task = task.seq
                                          AND q.attempt = task.attempt AND NOT q.approval
                                          AND q.answer IS NULL AND NOT q.withdrawn)
                             THEN 'input_required' ELSE 'running' END
WHERE id = :id AND attempt = :attempt AND state = 'input_required'
RETURNING {changed};

-- name: signals_renew
-- Whoever holds them is still at it.
UPDATE signal SET lease_boot = :boot, lease_until = :lease_until
WHERE key = ANY(:keys::text[]) AND consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: signals_postpone
-- Later, and this was no try.
UPDATE signal SET state = 'pending', consumer = NULL, tries = greatest(tries - 1, 0),
                  lease_boot = :boot, lease_until = :from
WHERE key = ANY(:keys::text[]) AND consumer = :consumer AND state = 'claimed'
RETURNING seq;

-- name: activity_replace
-- The latest status of a task takes the place of one that nobody was told yet.
UPDATE signal SET text = :text, data = :data
WHERE task = :task AND kind = 'message' AND state = 'pending' AND starts_with(key, :prefix);

-- name: activity_last
-- When the session was last told of a status, and what became of that.
SELECT state, greatest(created_at, delivered_at) FROM signal
WHERE task = :task AND kind = 'message' AND channel = 'inbox' AND starts_with(key, :prefix)
ORDER BY seq DESC LIMIT 1;

-- name: activity_is_over
-- The end says more than the last status before it.
UPDATE signal SET state = 'dropped', reason = 'the task has ended', lease_boot = NULL,
                  lease_until = NULL
WHERE task = :task AND kind = 'message' AND state = 'pending' AND starts_with(key, :prefix);

-- name: channel_pause
-- With the reason, or NULL to go on. Nothing where that is so already.
UPDATE channel SET paused = :reason
WHERE owner = :owner AND name = :name AND (paused IS NULL) = (:reason::text IS NOT NULL)
RETURNING name;

-- name: channel_drop_signals
-- What a channel that is gone or paused was to deliver.
UPDATE signal SET state = 'dropped', reason = :reason, consumer = NULL, lease_boot = NULL,
                  lease_until = NULL, retry_at = NULL
WHERE channel = :name AND channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed')
  AND owner = :owner;

-- name: secret_get
SELECT content FROM secret WHERE name = :name;

-- name: secrets_forget
DELETE FROM secret WHERE name = ANY(:names::text[]) RETURNING name;

-- name: tasks_before_create
-- What has to be known before many are made: which of the ids are taken, how many are active of each
-- sort (as `task_count_active` counts them), and the queues.
WITH w AS MATERIALIZED (SELECT id FROM jsonb_array_elements_text(:ids::jsonb) given (id)),
s AS MATERIALIZED (
    SELECT place, value ->> 0 AS owner, value ->> 1 AS session, value ->> 2 AS kind,
           (value ->> 3)::boolean AS in_queue
    FROM jsonb_array_elements(:sorts::jsonb) WITH ORDINALITY given (value, place))
SELECT (SELECT coalesce(json_agg(t.id)::text, '[]') FROM w JOIN task t ON t.id = w.id),
       (SELECT coalesce(json_agg((
            SELECT count(*) FROM task t
            WHERE t.owner = s.owner AND t.session = s.session AND t.kind = s.kind
              AND t.state IN ('queued', 'running', 'input_required')
              AND NOT (t.state = 'queued' AND t.schedule IS NOT NULL AND t.after IS NOT NULL)
              AND t.parked_at IS NULL
              AND (t.queue IS NOT NULL AND t.state = 'queued') = s.in_queue) ORDER BY place)::text,
            '[]') FROM s),
       (SELECT coalesce(json_agg(name ORDER BY name)::text, '[]') FROM queue);

-- name: tasks_insert
-- Tasks that have not started, or that could not; nothing of those whose ids are taken.
INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, max_runtime_s,
                  parent, schedule, hand_over, queue, after, after_failure, retries_left, priority,
                  detail, events)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 'queued',
       (value ->> 6)::bigint, (value ->> 7)::double precision, value ->> 8, value ->> 9,
       value ->> 10, value ->> 11, value ->> 12, (value ->> 13)::boolean, (value ->> 14)::bigint,
       (value ->> 15)::bigint, value ->> 16, 1
FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY given (value, place) ORDER BY place
ON CONFLICT (id) DO NOTHING
RETURNING {changed};

-- name: tasks_before_begin
-- What has to be known before many begin: the last number before theirs, which of the ids are taken,
-- how many are active of each sort, and of each owner what may run and what does. Parked calls are
-- counted apart from runs that were meant to go on. The numbers are drawn here, as many as there are ids: nobody else draws meanwhile.
SELECT (SELECT min(nextval(pg_get_serial_sequence('task', 'seq'))) - 1
        FROM jsonb_array_elements(:ids::jsonb)),
       (SELECT coalesce(json_agg(t.id)::text, '[]')
        FROM jsonb_array_elements_text(:ids::jsonb) w (id) JOIN task t ON t.id = w.id),
       (SELECT coalesce(json_agg((
            SELECT count(*) FROM task
            WHERE owner = s.value ->> 0 AND session = s.value ->> 1 AND kind = s.value ->> 2
              AND state IN ('queued', 'running', 'input_required')
              AND NOT (state = 'queued' AND schedule IS NOT NULL AND after IS NOT NULL)
              AND (parked_at IS NOT NULL) = (s.value ->> 3)::boolean) ORDER BY s.place)::text, '[]')
        FROM jsonb_array_elements(:sorts::jsonb) WITH ORDINALITY s (value, place)),
       (SELECT coalesce(json_agg(json_build_array(
            (SELECT l.running FROM owner_limit l WHERE l.owner IN (o.value ->> 0, '')
             ORDER BY l.owner = '' LIMIT 1),
            (SELECT count(*) FROM task WHERE owner = o.value ->> 0
             AND state IN ('running', 'input_required'))) ORDER BY o.place)::text, '[]')
        FROM jsonb_array_elements(:owners::jsonb) WITH ORDINALITY o (value, place));

-- name: tasks_begin
-- Tasks that run from the start in the process that writes them.
INSERT INTO task (seq, id, owner, session, kind, title, spec, created_at, started_at, max_runtime_s,
                  parent, schedule, boot_id, started_boot, pid, worker, node, parked_at, priority,
                  state, events)
OVERRIDING SYSTEM VALUE
SELECT (value ->> 0)::bigint, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
       value ->> 6, (value ->> 7)::bigint, (value ->> 7)::bigint,
       (value ->> 8)::double precision, value ->> 9, value ->> 10, value ->> 11,
       (value ->> 12)::bigint, (value ->> 13)::bigint, value ->> 14, value ->> 14,
       (value ->> 15)::bigint, (value ->> 16)::bigint, 'running', 2
FROM jsonb_array_elements(:rows::jsonb);

-- name: workers
-- Those that are registered, and those that tasks name though they are not.
SELECT id, boot_id, pid, hand_over FROM worker
UNION ALL
SELECT DISTINCT worker, boot_id, pid, NULL FROM task
WHERE worker IS NOT NULL AND state IN ('running', 'input_required')
  AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = task.worker);

-- name: tasks_to_stop_of_worker
-- What somebody wants it to end.
SELECT id, stop_at, stop_grace_s FROM task
WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0)
  AND worker = :worker AND state IN ('running', 'input_required');

-- name: tasks_for_applications
-- What waits for an application that has the tool or the agent.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.state = 'queued' AND t.kind IN ('tool', 'agent') AND t.hand_over IS NULL
  AND (t.after IS NULL OR NOT EXISTS (SELECT 1 FROM json_array_elements_text(t.after::json) a (id)
                                      JOIN task d ON d.id = a.id WHERE d.finished_at IS NULL))
ORDER BY t.priority DESC, t.seq LIMIT :limit;

-- name: schedule_find
-- By the beginning of the id.
SELECT {schedule} FROM schedule
WHERE id >= :prefix AND id < :prefix || '~' AND owner = :owner
  AND (:session::text IS NULL OR session = :session)
ORDER BY seq DESC LIMIT :limit;

-- name: schedules
-- Of one session, or of all of an owner; `states` is a JSON list, empty for all.
SELECT {schedule} FROM schedule
WHERE owner = :owner AND (:session::text IS NULL OR session = :session)
  AND (cardinality(:states::text[]) = 0 OR state = ANY(:states::text[]))
ORDER BY seq;

-- name: schedule_move
-- On to the next firing, by whoever has seen the present one as it is; the last one ends it.
UPDATE schedule SET next_at = :next_at, due_at = :due_at, last_at = :last_at, detail = NULL,
                    state = CASE WHEN :next_at::instant IS NULL THEN 'done' ELSE 'active' END,
                    ended_at = CASE WHEN :next_at::instant IS NULL THEN :now::instant END
WHERE id = :id AND state = 'active' AND next_at = :expected
RETURNING {schedule};

-- name: schedule_put_off
-- The same firing later, and why.
UPDATE schedule SET due_at = greatest(next_at, :due_at), detail = :detail
WHERE id = :id AND state = 'active' AND next_at = :expected
RETURNING id;

-- name: schedule_active_tasks
-- Tasks of earlier firings that have not ended, oldest first.
SELECT id FROM task
WHERE schedule = :schedule AND state IN ('queued', 'running', 'input_required') ORDER BY seq;

-- name: schedule_pause
UPDATE schedule SET state = 'paused', next_at = NULL, due_at = NULL, detail = :detail
WHERE id = :id AND owner = :owner AND (:session::text IS NULL OR session = :session) AND state = 'active'
RETURNING {schedule};

-- name: schedule_resume
UPDATE schedule SET state = 'active', next_at = :next_at, due_at = :due_at, detail = NULL
WHERE id = :id AND owner = :owner AND (:session::text IS NULL OR session = :session) AND state = 'paused'
RETURNING {schedule};

-- name: schedule_cancel
UPDATE schedule SET state = 'canceled', next_at = NULL, due_at = NULL, ended_at = :now
WHERE id = :id AND owner = :owner AND (:session::text IS NULL OR session = :session)
  AND state IN ('active', 'paused')
RETURNING {schedule};

-- name: token_insert
-- Not in trade for one that was revoked meanwhile.
INSERT INTO token (id, owner, role, session, label, parent, digest, created_at, expires_at)
SELECT :id, :owner, :role, :session, :label, :parent, :digest, :created_at, :expires_at
WHERE :parent::identifier IS NULL OR EXISTS (SELECT 1 FROM token WHERE id = :parent AND revoked_at IS NULL)
RETURNING id;

-- name: token_used
UPDATE token SET last_used_at = greatest(last_used_at, :at) WHERE id = :id RETURNING id;

-- name: tokens_forget
-- Those that have opened nothing for a while.
DELETE FROM token WHERE least(revoked_at, expires_at) < :before
RETURNING id;

-- name: task_children
-- What a task has started itself, and what lives in the session that bears its name; newest first.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.seq IN (SELECT seq FROM task WHERE parent = :parent
                UNION SELECT seq FROM task WHERE owner = :owner AND session = :parent)
  AND t.owner = :owner AND (:session::text IS NULL OR t.session = :session)
ORDER BY t.seq DESC LIMIT :limit;

-- name: task_ended_since
-- What has ended since a time, the last one first, without results.
SELECT {light} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.finished_at >= :since AND t.owner = :owner AND (:session::text IS NULL OR t.session = :session)
ORDER BY t.finished_at DESC, t.seq DESC LIMIT :limit;

-- name: session_counts
-- The sessions of an owner by what their tasks are at present: of all that have not ended, and of the
-- newest of the others. `agent` is the task whose session it is, where it is a sub-agent's own.
WITH looked_at AS (
    SELECT seq, session, state, created_at FROM (
        SELECT seq, session, state, created_at FROM task
        WHERE owner = :owner AND (:session::text IS NULL OR session = :session)
        ORDER BY seq DESC LIMIT :limit) AS newest
    UNION
    SELECT seq, session, state, created_at FROM task
    WHERE state IN ('queued', 'running', 'input_required') AND owner = :owner
      AND (:session::text IS NULL OR session = :session))
SELECT l.session, l.state, count(*), max(l.created_at),
       (SELECT a.id FROM task a WHERE a.id = l.session AND a.owner = :owner AND a.kind = 'agent')
FROM looked_at l GROUP BY l.session, l.state ORDER BY l.session, l.state;

-- name: signals_newest_of_session
-- The newest signals of one session; `states` is a JSON list, empty for all.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.session = :session AND s.seq < :before
  AND (cardinality(:states::text[]) = 0 OR s.state = ANY(:states::text[]))
  AND (:channel::text IS NULL OR s.channel = :channel)
ORDER BY s.seq DESC LIMIT :limit;

-- name: signals_newest_of_owner
-- The same for all sessions of an owner.
SELECT {signal} FROM signal s JOIN task t ON t.seq = s.task
WHERE s.owner = :owner AND s.seq < :before
  AND (cardinality(:states::text[]) = 0 OR s.state = ANY(:states::text[]))
  AND (:channel::text IS NULL OR s.channel = :channel)
ORDER BY s.seq DESC LIMIT :limit;

-- name: jobs_defer
SELECT dispatch(:name, :now, :latest, :ended::text[], :fresh::bigint[], :reserve);

-- name: tasks_recall
-- What was let in and nobody has taken is to be let in anew, because the rules have changed. Not what
-- waits for another task in vain, nor what a machine has fetched and is about to begin, which looks at
-- the rules itself. Their jobs go with that (`call_back`).
UPDATE task SET let_in = attempt - 1
WHERE state = 'queued' AND let_in = attempt AND node IS NULL
  AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j
                  WHERE j.queueing_lock = task.id || ':' || task.attempt AND j.status = 'doing')
  AND (after_failure OR NOT EXISTS (
          SELECT 1 FROM json_array_elements_text(task.after::json) a (id) JOIN task d ON d.id = a.id
          WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded'))
RETURNING id, attempt;

-- name: jobs_cancel
SELECT procrastinate_cancel_job_v1(id, false, true) FROM procrastinate_jobs
WHERE queueing_lock = ANY(:job_keys::text[]) AND status = 'todo';

-- name: jobs_silent
-- What is with nodes that have not said for a while that they live, or that nobody knows, also what has ended there and left
-- processes behind; what was sent to such a node, which has not taken it; what somebody was given who did not take it either, dead or because the
-- answer did not arrive; what was let in and has no job (who had it left while the database was away);
-- and jobs of which nothing is left. Each with the time after which it is dead, whether it is, and
-- where it is in this moment.
WITH silent AS (
    SELECT n.id, n.silent_s, clock_timestamp() - greatest(w.last_heartbeat, n.seen_at) AS since
    FROM node n LEFT JOIN procrastinate_workers w ON w.id = n.worker
    WHERE greatest(w.last_heartbeat, n.seen_at)
          < clock_timestamp() - n.silent_s * interval '1 second' * 2 / 3
      AND n.silent_s <= :contact_s)
SELECT t.id, t.attempt, silent.silent_s, since > silent_s * interval '1 second', t.node, t.state <> 'queued'
FROM task t JOIN silent ON silent.id = t.node
WHERE t.node IS NOT NULL AND (t.finished_at IS NULL OR t.leftovers > 0)
UNION
SELECT t.id, t.attempt, silent_s, since > silent_s * interval '1 second', t.node, t.state <> 'queued'
FROM task t JOIN silent ON silent.id = t.sent_to
WHERE t.sent_to IS NOT NULL AND t.state = 'queued' AND t.node IS NULL AND t.let_in = t.attempt
UNION
SELECT t.id, t.attempt, :silent_s::double precision, true, t.node, t.state <> 'queued' FROM task t
WHERE t.sent_to IS NOT NULL AND t.state = 'queued' AND t.node IS NULL AND t.let_in = t.attempt
  AND :silent_s <= :contact_s
  AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = t.sent_to AND NOT n.draining)
UNION
SELECT t.id, t.attempt, :silent_s, true, t.node, t.state <> 'queued' FROM task t
WHERE t.node IS NOT NULL AND (t.finished_at IS NULL OR t.leftovers > 0) AND :silent_s <= :contact_s
  AND coalesce(t.started_at, t.created_at) < extract(epoch FROM clock_timestamp()) * 1000000 - :silent_s * 1000000
  AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = t.node)
UNION
SELECT t.id, t.attempt, :silent_s, true, t.node, t.state <> 'queued' FROM task t
WHERE t.state = 'queued' AND t.let_in = t.attempt AND t.node IS NULL AND :silent_s <= :contact_s
  AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs job
                  WHERE job.queueing_lock = t.id || ':' || t.attempt AND job.status IN ('todo', 'doing'))
UNION
SELECT job.args ->> 'task', (job.args ->> 'attempt')::bigint, coalesce(w.silent_s, :silent_s), true,
       t.node, coalesce(t.state <> 'queued', false)
FROM procrastinate_jobs job LEFT JOIN node w ON w.worker = job.worker_id
LEFT JOIN task t ON t.id = job.args ->> 'task' AND t.attempt = (job.args ->> 'attempt')::bigint
  AND t.finished_at IS NULL
WHERE job.status = 'doing' AND job.task_name = :name AND coalesce(w.silent_s, :silent_s) <= :contact_s
  AND (t.id IS NULL OR (t.state = 'queued' AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = t.node)))
  AND NOT EXISTS (SELECT 1 FROM procrastinate_events e WHERE e.job_id = job.id AND e.type = 'started'
                  AND e.at > clock_timestamp() - coalesce(w.silent_s, :silent_s) * interval '1 second');

-- name: node_lives
-- Whether a node has said that it lives, not so long ago that it would be dead.
SELECT 1 FROM node n LEFT JOIN procrastinate_workers w ON w.id = n.worker
WHERE n.id = :node
  AND greatest(w.last_heartbeat, n.seen_at)
      > clock_timestamp() - least(n.silent_s, :silent_s) * interval '1 second';

-- name: contact_prove
-- Something is written. What is old goes as the numbers of commits do.
INSERT INTO commitment (writer, number) VALUES (:node, 0)
ON CONFLICT (writer) DO UPDATE SET at = excluded.at
RETURNING writer;

-- name: jobs_left_behind
-- What the last worker of a node was given and had not taken when it died.
SELECT t.id, t.attempt FROM node n JOIN procrastinate_jobs job ON job.worker_id = n.worker
JOIN task t ON t.id = job.args ->> 'task' AND t.attempt = (job.args ->> 'attempt')::bigint
WHERE n.id = :node AND job.status = 'doing' AND job.task_name = :name AND t.state = 'queued'
  AND t.node IS NULL;

-- name: jobs_brought
-- The same of a worker that lives.
SELECT t.id, t.attempt FROM procrastinate_jobs job
JOIN task t ON t.id = job.args ->> 'task' AND t.attempt = (job.args ->> 'attempt')::bigint
WHERE job.worker_id = :number AND job.status = 'doing' AND job.task_name = :name
  AND t.state = 'queued' AND t.node IS NULL;

-- name: engine_worker_retire
-- A worker that the engine does not know is given no job, not even by a fetch that is under way.
SELECT procrastinate_unregister_worker_v1(worker) FROM node WHERE id = :node;

-- name: node_put
INSERT INTO node (id, worker, kind, machine, pid, silent_s, queues, tools, agents, routes, places,
                  draining, ahead)
VALUES (:id, :worker, :kind, :machine, :pid, :silent_s, :queues, :tools, :agents, :routes::text[],
        :places, :draining, :now - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (id) DO UPDATE
SET worker = excluded.worker, kind = excluded.kind, machine = excluded.machine, pid = excluded.pid,
    silent_s = excluded.silent_s, queues = excluded.queues, tools = excluded.tools,
    agents = excluded.agents, routes = excluded.routes, places = excluded.places,
    draining = excluded.draining, seen_at = excluded.seen_at, ahead = excluded.ahead
RETURNING id;

-- name: node_name_take
-- Nothing where another one took it a moment ago, and may not have been heard of yet.
INSERT INTO node_name (id, holder) VALUES (:id, :holder)
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, at = excluded.at
WHERE node_name.holder = excluded.holder
   OR node_name.at < clock_timestamp() - :hold_s::double precision * interval '1 second'
RETURNING id;

-- name: node_remove
DELETE FROM node WHERE id = :id RETURNING id;

-- name: nodes_gone
SELECT 1 FROM node_gone WHERE silent_s <= :contact_s LIMIT 1;

-- name: nodes_forget
DELETE FROM node WHERE id IN (SELECT id FROM node_gone WHERE silent_s <= :contact_s) RETURNING id;

-- name: node_names_forget
-- Who took one so long ago was heard of since, or never will be.
DELETE FROM node_name a WHERE at < clock_timestamp() - interval '1 day'
  AND NOT EXISTS (SELECT 1 FROM node n WHERE n.id = a.id)
RETURNING id;

-- name: turns_forget
-- Of routes that nobody takes from, and nothing waits on: those of one node go with it.
DELETE FROM turn u WHERE u.owner = ''
  AND NOT EXISTS (SELECT 1 FROM node n WHERE u.route = ANY(n.routes))
  AND NOT EXISTS (SELECT 1 FROM task t WHERE t.state = 'queued' AND NOT t.held
                  AND t.let_in < t.attempt AND t.route = u.route)
RETURNING route;

-- name: contenders_forget
-- Of routes that nobody has looked at since the last of it ended without its turn.
DELETE FROM contender c WHERE NOT EXISTS (
    SELECT 1 FROM task t WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
      AND t.route = c.route AND t.owner = c.owner)
RETURNING route;

-- name: nodes
-- Each with how long it was not heard of, and how much it has at present.
SELECT n.id, n.kind, n.machine, n.pid, n.silent_s, n.queues, n.tools, n.agents, n.places,
       n.draining,
       extract(epoch FROM clock_timestamp() - greatest(w.last_heartbeat, n.seen_at))::double precision,
       (SELECT count(*) FROM task t WHERE t.node = n.id AND t.node IS NOT NULL
        AND (t.finished_at IS NULL OR t.leftovers > 0) AND t.state <> 'queued'),
       w.id IS NOT NULL, n.ahead
FROM node n LEFT JOIN procrastinate_workers w ON w.id = n.worker ORDER BY n.id;

-- name: offer_put
INSERT INTO offer (kind, name, document) VALUES (:kind, :name, :document)
ON CONFLICT (kind, name) DO UPDATE SET document = excluded.document
WHERE offer.document <> excluded.document
RETURNING name;

-- name: offers
SELECT kind, name, document FROM offer ORDER BY kind, name;

-- name: nodes_take
-- Attempts that the engine has brought to nodes: whether each was taken. What could not begin there,
-- because its queue or its owner has no room, is let in anew when there is, and holds no place of a
-- machine till then. What waits in vain is taken: a machine ends it.
WITH wanted AS MATERIALIZED (
    SELECT seq AS wanted_seq, taker, fits_anyway, queue AS wanted_queue, owner AS wanted_owner,
           row_number() OVER (PARTITION BY fits_anyway, queue ORDER BY place) AS turn,
           row_number() OVER (PARTITION BY fits_anyway, owner ORDER BY place) AS owner_turn
    FROM (SELECT t.seq, t.queue, t.owner, w.value ->> 2 AS taker, w.place,
                 t.node IS NOT NULL OR (NOT t.after_failure AND EXISTS (
                       SELECT 1 FROM json_array_elements_text(t.after::json) a (id) JOIN task d ON d.id = a.id
                       WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded')) AS fits_anyway
          FROM jsonb_array_elements(:wanted::jsonb) WITH ORDINALITY w (value, place)
          JOIN task t ON t.id = w.value ->> 0
          WHERE t.attempt = (w.value ->> 1)::bigint AND t.state = 'queued' AND t.let_in = t.attempt
            AND (t.node IS NULL OR t.node = w.value ->> 2)) AS brought),
judged AS MATERIALIZED (
    SELECT wanted_seq, taker, fits_anyway OR (
        (wanted_queue IS NULL OR EXISTS (
            SELECT 1 FROM queue q
            WHERE q.name = wanted_queue AND NOT q.paused AND turn <= q.width
                - (SELECT count(*) FROM task r
                   WHERE r.queue = q.name AND r.state IN ('running', 'input_required'))
                - (SELECT count(*) FROM task r WHERE r.queue = q.name AND r.queue IS NOT NULL
                   AND r.state = 'queued' AND r.let_in = r.attempt AND r.node IS NOT NULL)))
        AND coalesce((
            SELECT owner_turn <= l.running
                - (SELECT count(*) FROM task r
                   WHERE r.owner = wanted_owner AND r.state IN ('running', 'input_required'))
                - (SELECT count(*) FROM task r WHERE r.owner = wanted_owner
                   AND r.state = 'queued' AND r.let_in = r.attempt AND r.node IS NOT NULL)
            FROM owner_limit l WHERE l.owner IN (wanted_owner, '')
            ORDER BY l.owner = '' LIMIT 1), true)) AS fits
    FROM wanted)
UPDATE task SET node = CASE WHEN fits THEN taker END, sent_to = CASE WHEN NOT fits THEN sent_to END,
                let_in = CASE WHEN fits THEN attempt ELSE attempt - 1 END
FROM judged WHERE seq = wanted_seq
RETURNING fits, {changed};

-- name: node_next
-- Who could carry out a task instead of the node that has it: those that live, take from the same
-- route and have not refused it; those with a free place first. `with_room`: only those.
SELECT n.id FROM task t
JOIN node n ON route_of(NULL, t.queue, t.kind, t.hand_over, t.spec) = ANY(n.routes)
JOIN procrastinate_workers w ON w.id = n.worker
CROSS JOIN LATERAL (SELECT count(*) AS had FROM task h WHERE h.node = n.id AND h.node IS NOT NULL
                    AND (h.finished_at IS NULL OR h.leftovers > 0)) taken
WHERE t.id = :id AND t.attempt = :attempt AND n.id <> :node AND NOT n.draining
  AND n.id <> ALL(t.refused) AND (NOT :with_room OR had < n.places)
  AND w.last_heartbeat >= clock_timestamp() - n.silent_s * interval '1 second'
ORDER BY had >= n.places, had, n.id LIMIT 1;

-- name: task_hand_on
-- Nobody has begun it, and one other node is to.
UPDATE task SET let_in = attempt - 1, node = NULL, sent_to = :next,
                refused = CASE WHEN :refused THEN array_append(refused, :node) ELSE refused END
WHERE id = :id AND attempt = :attempt AND state = 'queued' AND node = :node
RETURNING seq;

-- name: task_let_in_again
-- Nobody has begun it, and nobody but this node has taken it: the engine is given it anew.
UPDATE task SET let_in = attempt - 1, node = NULL, sent_to = NULL
WHERE id = :id AND attempt = :attempt AND state = 'queued' AND (node IS NULL OR node = :node)
RETURNING seq;

-- name: task_is_with
-- Whether this node has an attempt.
SELECT 1 FROM task WHERE id = :id AND attempt = :attempt AND node = :node;

-- name: task_gives_up_leftovers
-- What it has left behind is with a node of which nobody knows anything.
UPDATE task SET leftovers = 0, events = events + 1
WHERE id = :id AND attempt = :attempt AND node = :node AND leftovers > 0
RETURNING {changed};

-- name: jobs_close
-- What a worker had that is dead.
SELECT procrastinate_finish_job_v1(id, 'failed', true) FROM procrastinate_jobs
WHERE status = 'doing' AND task_name = :name AND args ->> 'task' = :task
  AND (args ->> 'attempt')::bigint = :attempt;

-- name: node_queued
-- What a node has taken and not begun.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.node = :node AND t.node IS NOT NULL AND t.finished_at IS NULL AND t.state = 'queued'
ORDER BY t.seq LIMIT :limit;

-- name: node_kept
-- What a machine looks after.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.node = :node AND t.node IS NOT NULL AND (t.finished_at IS NULL OR t.leftovers > 0)
ORDER BY t.seq;

-- name: node_has
-- One task, where its present attempt is with this node.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.id = :id AND t.node = :node;

-- name: node_waiting
-- Of that, what is to be started or stopped, or waits in vain.
SELECT {task} FROM task t LEFT JOIN signal s ON s.task = t.seq AND s.key = t.id || ':end'
WHERE t.node = :node AND t.node IS NOT NULL AND (t.finished_at IS NULL OR t.leftovers > 0)
  AND (t.stop_at IS NOT NULL
       OR (t.state = 'queued'
           AND (t.queue IS NULL OR EXISTS (
                SELECT 1 FROM queue q WHERE q.name = t.queue AND NOT q.paused AND q.width > (
                    SELECT count(*) FROM task r
                    WHERE r.queue = q.name AND r.state IN ('running', 'input_required'))))
           AND coalesce((SELECT l.running > (SELECT count(*) FROM task r WHERE r.owner = t.owner
                                             AND r.state IN ('running', 'input_required'))
                         FROM owner_limit l WHERE l.owner IN (t.owner, '')
                         ORDER BY l.owner = '' LIMIT 1), true))
       OR (t.state = 'queued' AND t.after IS NOT NULL AND NOT t.after_failure
           AND EXISTS (SELECT 1 FROM json_array_elements_text(t.after::json) a (id)
                       JOIN task d ON d.id = a.id
                       WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded')))
ORDER BY t.stop_at IS NULL, t.priority DESC, t.seq LIMIT :limit;

-- name: node_answers
SELECT {question} FROM question q JOIN task t ON t.seq = q.task
WHERE t.node = :node AND q.answer IS NOT NULL AND NOT q.handed_on AND q.attempt = t.attempt
  AND NOT q.approval AND t.state IN ('running', 'input_required');

-- name: node_messages
SELECT {message} FROM message m JOIN task t ON t.seq = m.task
WHERE t.node = :node AND m.taken IS NULL AND t.state IN ('running', 'input_required')
ORDER BY m.task, m.number LIMIT :limit;

-- name: format_now
SELECT oldest, number FROM format;

-- name: engine_worker
-- A worker of the engine, if it is this node's. A server that has taken the place of another one, and had not heard
-- of the last ones, may have given the number of one of them to another node.
SELECT 1 FROM procrastinate_workers
WHERE id = :number AND NOT EXISTS (SELECT 1 FROM node WHERE worker = :number AND id <> :node);

-- name: node_quiet
-- Since a node has last said that it lives, where it is that worker.
SELECT extract(epoch FROM clock_timestamp() - greatest(w.last_heartbeat, n.seen_at))
FROM node n LEFT JOIN procrastinate_workers w ON w.id = n.worker
WHERE n.id = :node AND n.worker = :number;

-- name: mirror_begin
-- Streams of attempts that run, where the record has nothing of them.
INSERT INTO mirror (task, attempt, stream)
SELECT t.seq, t.attempt, w.stream
FROM unnest(:ids::text[], :attempts::bigint[], :streams::text[], :sinces::bigint[])
     AS w (id, attempt, stream, since)
JOIN task t ON t.id = w.id AND t.attempt = w.attempt
WHERE w.since = 0
ON CONFLICT DO NOTHING
RETURNING task;

-- name: mirror_forget
-- Of earlier attempts all but the last that has written: of those nobody reads anything any more.
DELETE FROM mirror m
USING unnest(:ids::text[], :attempts::bigint[]) AS w (id, attempt), task t
WHERE t.id = w.id AND t.attempt = w.attempt AND m.task = t.seq AND m.attempt < w.attempt
  AND m.attempt IS DISTINCT FROM
      (SELECT max(l.attempt) FROM mirror l WHERE l.task = t.seq AND l.stream <> 'marks')
RETURNING m.attempt;

-- name: mirror_empty
-- The job has done so itself: what follows begins at its first byte again.
WITH emptied AS (
    UPDATE mirror m SET total = 0, beginning = m.beginning + 1
    FROM unnest(:ids::text[], :attempts::bigint[], :streams::text[], :anew::boolean[])
         AS w (id, attempt, stream, anew)
    JOIN task t ON t.id = w.id AND t.attempt = w.attempt
    WHERE w.anew AND m.task = t.seq AND m.attempt = w.attempt AND m.stream = w.stream
    RETURNING m.task, m.attempt, m.stream
)
DELETE FROM mirror_piece p USING emptied e
WHERE p.task = e.task AND p.attempt = e.attempt AND p.stream = e.stream
RETURNING p.at;

-- name: mirror_take_back
-- Small pieces at the end of streams, which become one with what follows.
WITH taken AS (
    DELETE FROM mirror_piece p
    USING unnest(:ids::text[], :attempts::bigint[], :streams::text[], :sinces::bigint[],
                 :joins::bigint[])
          WITH ORDINALITY AS w (id, attempt, stream, since, joins, number),
          task t, mirror m
    WHERE t.id = w.id AND t.attempt = w.attempt
      AND m.task = t.seq AND m.attempt = w.attempt AND m.stream = w.stream AND m.total = w.since
      AND p.task = m.task AND p.attempt = m.attempt AND p.stream = m.stream AND p.at >= w.joins
    RETURNING w.number, p.at, p.data
)
SELECT number, string_agg(data, '' ORDER BY at) FROM taken GROUP BY number;

-- name: mirror_put
-- What was written since, where the record holds as much as is thought.
WITH grown AS (
    UPDATE mirror m SET total = w.total
    FROM unnest(:ids::text[], :attempts::bigint[], :streams::text[], :sinces::bigint[],
                :totals::bigint[])
         WITH ORDINALITY AS w (id, attempt, stream, since, total, number)
    JOIN task t ON t.id = w.id AND t.attempt = w.attempt
    WHERE m.task = t.seq AND m.attempt = w.attempt AND m.stream = w.stream AND m.total = w.since
    RETURNING w.number, m.task, m.attempt, m.stream
), added AS (
    INSERT INTO mirror_piece (task, attempt, stream, at, data)
    SELECT g.task, g.attempt, g.stream, n.at,
           substring(:data::bytea FROM n.begins::integer FOR n.length::integer)
    FROM unnest(:numbers::bigint[], :places::bigint[], :begins::bigint[], :lengths::bigint[])
         AS n (number, at, begins, length)
    JOIN grown g ON g.number = n.number
)
SELECT number FROM grown;

-- name: mirror_drop
-- What a bounded log keeps no longer.
DELETE FROM mirror_piece p
USING unnest(:ids::text[], :attempts::bigint[], :streams::text[], :totals::bigint[],
             :firsts::bigint[], :ends::bigint[]) AS w (id, attempt, stream, total, first, ends),
      task t, mirror m
WHERE t.id = w.id AND t.attempt = w.attempt
  AND m.task = t.seq AND m.attempt = w.attempt AND m.stream = w.stream AND m.total = w.total
  AND p.task = m.task AND p.attempt = m.attempt AND p.stream = m.stream
  AND p.at >= w.first AND p.at < w.ends
RETURNING p.at;

-- name: tasks_wrote
-- How much that is, so that who lists tasks need not read it.
UPDATE task t
SET output_bytes = (w.value ->> 2)::bigint, dropped_bytes = (w.value ->> 3)::bigint
FROM jsonb_array_elements(:wrote::jsonb) AS w (value)
WHERE t.id = w.value ->> 0 AND t.attempt = (w.value ->> 1)::bigint AND t.finished_at IS NULL
RETURNING t.seq;

-- name: mirror_held
-- What is there of an attempt, and the last bytes of each stream.
SELECT m.stream, m.total,
       coalesce(array_agg(p.at ORDER BY p.at) FILTER (WHERE p.at IS NOT NULL), '{}'),
       coalesce(array_agg(length(p.data) ORDER BY p.at) FILTER (WHERE p.at IS NOT NULL), '{}'),
       (SELECT substring(l.data FROM greatest(1, length(l.data) - 63)) FROM mirror_piece l
        WHERE l.task = m.task AND l.attempt = m.attempt AND l.stream = m.stream
        ORDER BY l.at DESC LIMIT 1)
FROM mirror m JOIN task t ON t.seq = m.task
LEFT JOIN mirror_piece p ON p.task = m.task AND p.attempt = m.attempt AND p.stream = m.stream
WHERE t.id = :id AND m.attempt = :attempt
GROUP BY m.task, m.attempt, m.stream;

-- name: mirror_of_task
-- Of the last attempt that has written anything; not what the caller has.
SELECT m.attempt, m.stream, m.beginning, m.total, had.total IS NOT NULL, p.at, p.data
FROM mirror m JOIN task t ON t.seq = m.task
LEFT JOIN unnest(:attempts::bigint[], :streams::text[], :beginnings::bigint[], :totals::bigint[])
     AS had (attempt, stream, beginning, total)
  ON had.attempt = m.attempt AND had.stream = m.stream AND had.beginning = m.beginning
  AND had.total <= m.total
LEFT JOIN LATERAL (
    SELECT greatest(at, coalesce(had.total, 0)) AS at,
           substring(data FROM greatest(0, coalesce(had.total, 0) - at)::integer + 1) AS data
    FROM mirror_piece
    WHERE task = m.task AND attempt = m.attempt AND stream = m.stream
      AND at + length(data) > coalesce(had.total, 0)
) AS p ON true
WHERE t.id = :id
  AND m.attempt = (SELECT max(l.attempt) FROM mirror l WHERE l.task = t.seq AND l.stream <> 'marks')
  AND (p.at IS NOT NULL OR had.total IS NULL)
ORDER BY m.stream, p.at;

-- name: input_send
-- To the attempt that runs; not where too much waits for it.
INSERT INTO input (task, attempt, data)
SELECT t.seq, t.attempt, :data::bytea FROM task t
WHERE t.id = :id AND t.owner = :owner AND (:session::text IS NULL OR t.session = :session)
  AND t.attempt = :attempt AND t.state IN ('running', 'input_required')
  AND (SELECT count(*) FROM input i WHERE i.task = t.seq AND i.outcome IS NULL) < :most
RETURNING seq;

-- name: input_outcome
SELECT outcome FROM input WHERE seq = :seq;

-- name: input_forget
-- Whoever has sent it knows what became of it, or waits no longer.
DELETE FROM input WHERE seq = :seq RETURNING outcome;

-- name: node_inputs
SELECT i.seq, t.id, i.attempt, i.data FROM input i JOIN task t ON t.seq = i.task
WHERE i.outcome IS NULL AND t.node = :node AND i.attempt = t.attempt
ORDER BY i.seq LIMIT :limit;

-- name: input_done
UPDATE input SET outcome = :outcome, data = NULL WHERE seq = :seq RETURNING seq;

-- name: attachment_put
-- Nothing for a task that has ended, as one may have that is asked for once more: they would stay.
-- The lock is for one that is ending just now.
INSERT INTO attachment (task, number, name, media_type, data)
SELECT seq, :number, :name, :media_type, :data
FROM task WHERE seq = :task AND finished_at IS NULL FOR SHARE
ON CONFLICT (task, number) DO NOTHING;

-- name: attachments_of
SELECT a.name, a.media_type, a.data FROM attachment a JOIN task t ON t.seq = a.task
WHERE t.id = :id ORDER BY a.number;

-- name: artifacts_begin
-- Where files of an attempt that has not ended go from now on, before the first one does, so that none
-- lies anywhere of which the record does not know. What was brought there before stays readable.
INSERT INTO artifacts (task, attempt, place, folder, sizes)
SELECT seq, attempt, :place, :folder, :sizes
FROM task WHERE id = :id AND attempt = :attempt AND finished_at IS NULL
ON CONFLICT (task, attempt) DO UPDATE
SET place = excluded.place, folder = excluded.folder,
    sizes = CASE WHEN (artifacts.place, artifacts.folder) = (excluded.place, excluded.folder)
                 THEN artifacts.sizes ELSE excluded.sizes END
RETURNING task;

-- name: artifacts_put
-- What there is now of an attempt that has not ended.
INSERT INTO artifacts (task, attempt, place, folder, sizes)
SELECT seq, attempt, :place, :folder, :sizes
FROM task WHERE id = :id AND attempt = :attempt AND finished_at IS NULL
ON CONFLICT (task, attempt) DO UPDATE
SET place = excluded.place, folder = excluded.folder, sizes = excluded.sizes
RETURNING task;

-- name: artifacts_left
SELECT folder FROM artifacts_left WHERE place = :place ORDER BY folder LIMIT :limit;

-- name: artifacts_removed
DELETE FROM artifacts_left WHERE place = :place AND folder = :folder RETURNING folder;

-- name: node_silent
-- Since a node that is a worker of the engine has last said that it lives.
SELECT extract(epoch FROM clock_timestamp() - w.last_heartbeat)
FROM node n JOIN procrastinate_workers w ON w.id = n.worker WHERE n.id = :node;

-- name: queue_depths
-- How many tasks of each queue wait and run; those that name none are in `default`.
SELECT coalesce(t.queue, 'default'), count(*) FILTER (WHERE t.state = 'queued'),
       count(*) FILTER (WHERE t.state <> 'queued')
FROM task t WHERE t.state IN ('queued', 'running', 'input_required')
GROUP BY t.queue ORDER BY 1;
