-- What `doctor` and `db check` ask. All of it only reads.

-- name: check_server
SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       pg_database_size(current_database()), pg_total_relation_size('mirror_piece'),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('max_connections')::bigint, pg_is_in_recovery(),
       current_setting('default_transaction_read_only')::boolean;

-- name: check_transactions
-- Those that are open for long: they keep others waiting, and what is deleted from being freed.
SELECT pid, coalesce(application_name, ''), coalesce(host(client_addr), 'this machine'),
       extract(epoch FROM clock_timestamp() - xact_start)::double precision,
       coalesce(wait_event_type = 'Lock', false)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND xact_start < clock_timestamp() - :longer_s * interval '1 second'
ORDER BY xact_start LIMIT 10;

-- name: check_lines
-- What waits for a worker that takes it, where none does: the queue of the engine, that of the task.
SELECT t.route, t.queue, t.count FROM (
    SELECT route, min(queue) AS queue, count(*) AS count FROM task
    WHERE state = 'queued' AND node IS NULL GROUP BY route) AS t
WHERE {unserved}
ORDER BY t.count DESC, t.route;

-- name: check_queues
SELECT name FROM queue;

-- name: check_jobs_without_tasks
-- A task and its job are written in one transaction, and called back in one.
SELECT count(*) FROM procrastinate_jobs job
LEFT JOIN task t ON t.id = job.args ->> 'task'
WHERE job.task_name = :name
  AND ((job.status = 'doing' AND t.seq IS NULL)
       OR (job.status = 'todo' AND (t.seq IS NULL OR t.finished_at IS NOT NULL)));

-- name: check_tasks_without_jobs
SELECT count(*) FROM task t
LEFT JOIN (SELECT args ->> 'task' AS id, (args ->> 'attempt')::bigint AS attempt
           FROM procrastinate_jobs
           WHERE task_name = :name AND status IN ('todo', 'doing')) AS job
  ON job.id = t.id AND job.attempt = t.attempt
WHERE t.state = 'queued' AND t.let_in = t.attempt AND t.node IS NULL AND job.id IS NULL;

-- name: check_running_nowhere
SELECT count(*) FROM task
WHERE state IN ('running', 'input_required') AND node IS NULL AND worker IS NULL;

-- name: check_events
-- The events of a task have the numbers from 1 to what its row says; the last of an ended one says so.
SELECT count(*) FILTER (WHERE t.events <> coalesce(e.last, 0) OR e.last <> e.count),
       count(*) FILTER (WHERE (t.finished_at IS NOT NULL) <> coalesce(e.finished = 1, false)), count(*)
FROM task t
LEFT JOIN (SELECT task, max(number) AS last, count(*) AS count,
                  count(*) FILTER (WHERE kind = 'finished') AS finished
           FROM event GROUP BY task) AS e ON e.task = t.seq;

-- name: check_shape
-- What there is beside the tables, where it is whole; see shape.py. Of the engine's own it says nothing.
WITH ours AS MATERIALIZED (
    SELECT oid, relname AS name, relrowsecurity, relacl FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
      AND relname NOT LIKE 'procrastinate%')
SELECT 'index ' || c.relname FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN ours ON ours.oid = i.indrelid
WHERE i.indisvalid AND i.indisready
UNION ALL
SELECT 'constraint ' || ours.name || '.' || c.conname FROM pg_constraint c
JOIN ours ON ours.oid = c.conrelid WHERE c.convalidated AND c.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT 'trigger ' || ours.name || '.' || t.tgname FROM pg_trigger t
JOIN ours ON ours.oid = t.tgrelid WHERE t.tgenabled <> 'D' AND NOT t.tgisinternal
UNION ALL
SELECT 'policy ' || ours.name || '.' || p.polname FROM pg_policy p JOIN ours ON ours.oid = p.polrelid
UNION ALL
SELECT 'row security ' || ours.name FROM ours WHERE ours.relrowsecurity
UNION ALL
SELECT 'right ' || a.privilege_type || ' ' || ours.name FROM ours, aclexplode(ours.relacl) a
WHERE a.grantee = to_regrole('backburner_tenant')
UNION ALL
SELECT 'right ' || a.privilege_type FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE n.oid = current_schema()::regnamespace AND a.grantee = to_regrole('backburner_tenant');

-- name: check_dead_letters
SELECT count(*) FROM signal WHERE state = 'dropped' AND channel <> 'inbox' AND tries > 0;

-- name: check_waiting
SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state <> 'queued') FROM task
WHERE state IN ('queued', 'running', 'input_required');
