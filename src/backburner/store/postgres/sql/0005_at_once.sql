-- What every task goes through before it runs, as functions: a program that has nothing else to write
-- writes it in one round trip (`create_at_once`, `claim_at_once`), and else as steps of a transaction.
-- Programs of the last release call them too: a later file may add functions, and change none of these.

-- Whether none of them is there already, all their queues are, and there is room for all: of each sort
-- (owner, session, kind, whether it waits in a queue) so many may be active (as `task_count_active`
-- counts) beside those that are to come. What is looked for is taken out of the JSON first: an index is
-- not asked with an expression by who sees only one owner's.
CREATE FUNCTION all_fit(given JSONB, sorts JSONB) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    ids TEXT[] := ARRAY(SELECT g.value ->> 0 FROM jsonb_array_elements(given) g (value));
    lines TEXT[] := ARRAY(SELECT DISTINCT g.value ->> 11 FROM jsonb_array_elements(given) g (value)
                          WHERE g.value ->> 11 IS NOT NULL);
    sort JSONB;
    of_owner TEXT;
    of_session TEXT;
    of_kind TEXT;
BEGIN
    IF EXISTS (SELECT 1 FROM task t WHERE t.id = ANY(ids)) OR cardinality(lines) <> (
        SELECT count(*) FROM queue q WHERE q.name = ANY(lines)) THEN
        RETURN false;
    END IF;
    FOR sort IN SELECT s.value FROM jsonb_array_elements(sorts) s (value) LOOP
        of_owner := sort ->> 0;
        of_session := sort ->> 1;
        of_kind := sort ->> 2;
        IF (sort ->> 4)::bigint < (
            SELECT count(*) FROM task t
            WHERE t.owner = of_owner AND t.session = of_session AND t.kind = of_kind
              AND t.state IN ('queued', 'running', 'input_required')
              AND NOT (t.state = 'queued' AND t.schedule IS NOT NULL AND t.after IS NOT NULL)
              AND t.parked_at IS NULL
              AND (t.queue IS NOT NULL AND t.state = 'queued') = (sort ->> 3)::boolean) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- Those of many that are queued, with their node or with none, and have a place in their queue and
-- beside others of their owner: → running. What waited for an application has found one. A take need
-- not be on disk before its machine goes on: one that the database has lost is made here.
CREATE FUNCTION claim_tasks(now_at BIGINT, given JSONB) RETURNS SETOF task LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
        WITH wanted AS MATERIALIZED (
            SELECT t.seq AS wanted_seq, t.queue AS wanted_queue, t.owner AS wanted_owner, w.value,
                   row_number() OVER (PARTITION BY t.queue ORDER BY w.place) AS turn,
                   row_number() OVER (PARTITION BY t.owner ORDER BY w.place) AS owner_turn
            FROM jsonb_array_elements(given) WITH ORDINALITY w (value, place)
            JOIN task t ON t.id = w.value ->> 0
            WHERE t.attempt = (w.value ->> 1)::bigint AND t.state = 'queued'
              AND (w.value ->> 8 IS NULL OR t.node = w.value ->> 8
                   OR (t.node IS NULL AND t.let_in = t.attempt)))
        UPDATE task SET state = 'running', node = coalesce(value ->> 8, node),
                        detail = CASE WHEN hand_over IS NOT NULL THEN detail END,
                        started_at = greatest(now_at, created_at), boot_id = value ->> 2,
                        started_boot = (value ->> 3)::bigint, pid = (value ->> 4)::bigint,
                        cgroup = value ->> 5, memory_cgroup = value ->> 6, worker = value ->> 7,
                        sent_to = NULL, events = events + 1
        FROM wanted
        WHERE seq = wanted_seq AND (wanted_queue IS NULL OR EXISTS (
                  SELECT 1 FROM queue q
                  WHERE q.name = wanted_queue AND NOT q.paused AND turn <= q.width - (
                      SELECT count(*) FROM task r
                      WHERE r.queue = q.name AND r.state IN ('running', 'input_required'))))
          AND coalesce((SELECT owner_turn <= l.running - (
                            SELECT count(*) FROM task r WHERE r.owner = wanted_owner
                            AND r.state IN ('running', 'input_required'))
                        FROM owner_limit l WHERE l.owner IN (wanted_owner, '')
                        ORDER BY l.owner = '' LIMIT 1), true)
        RETURNING task.*;
END
$$;

-- What the engine is given for an attempt. The key is of a job that nobody has taken yet: a second one
-- with it is refused.
CREATE FUNCTION job_of(engine_task TEXT, id TEXT, attempt BIGINT, route TEXT)
RETURNS procrastinate_job_to_defer_v1 LANGUAGE sql STABLE AS $$
    SELECT ROW(route, engine_task, 0, NULL, id || ':' || attempt,
               jsonb_build_object('task', id, 'attempt', attempt), NULL)::procrastinate_job_to_defer_v1
$$;

-- What the engine is given now, which `admit` says.
CREATE FUNCTION dispatch(engine_task TEXT, now_at BIGINT, latest BIGINT, ended TEXT[], fresh BIGINT[],
                         reserve BIGINT)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    jobs procrastinate_job_to_defer_v1[] := (
        SELECT array_agg(job_of(engine_task, a.id, a.attempt, a.route))
        FROM admit(now_at, latest, ended, fresh, reserve) a);
BEGIN
    IF jobs IS NOT NULL THEN
        PERFORM procrastinate_defer_jobs_v1(jobs);
    END IF;
END
$$;

-- Whether all of them go to the engine as they are written, as most do: `admit` would let them in, and
-- change nothing else. They wait for nothing, and on their one route nobody does, and there is room.
CREATE FUNCTION all_go(given JSONB, reserve BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$  -- else some of it is planned anew each time
DECLARE
    asked BIGINT := jsonb_array_length(given);
    on_route TEXT;
BEGIN
    SELECT min(r.route) INTO on_route
    FROM (SELECT CASE WHEN g.value ->> 11 IS NULL AND g.value ->> 12 IS NULL
                 THEN route_of(NULL, NULL, g.value ->> 3, g.value ->> 10, g.value ->> 5) END AS route
          FROM jsonb_array_elements(given) g (value)) r
    HAVING count(r.route) = asked AND min(r.route) = max(r.route);
    RETURN on_route IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM owner_limit)
        AND NOT EXISTS (SELECT 1 FROM task t
                        WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
                          AND t.route = on_route)
        AND asked <= route_room(on_route, reserve);
END
$$;

-- One writer at a time, and none whose program is too old for this record: see `migrations.py`. Answers
-- how long that took, in microseconds.
CREATE FUNCTION take_turn(known BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1111641682);  -- WRITERS
    IF (SELECT f.oldest FROM format f) > known THEN
        RAISE 'the record is newer than this program';
    END IF;
    RETURN extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000;
END
$$;

-- All of them or nothing: each is answered as if it had come alone, so what one of them is refused for
-- has to be known before the next is looked at. The rows are those of `tasks_insert`, which is not asked
-- here: rows that a function hands on to another one take half as long again.
CREATE FUNCTION create_at_once(known BIGINT, notice TEXT, asked_at BIGINT, of_owner TEXT, given JSONB,
                               sorts JSONB, engine_task TEXT, latest BIGINT, reserve BIGINT)
RETURNS SETOF task LANGUAGE plpgsql AS $$
DECLARE
    now_at BIGINT := asked_at + take_turn(known);
    go BOOLEAN := all_go(given, reserve);
    made task;
    fresh BIGINT[] := '{}';
BEGIN
    PERFORM set_config('role', 'backburner_tenant', true),
            set_config('backburner.owner', of_owner, true);
    IF NOT all_fit(given, sorts) THEN
        RETURN;
    END IF;
    FOR made IN
        INSERT INTO task (id, owner, session, kind, title, spec, state, created_at, max_runtime_s,
                          parent, schedule, hand_over, queue, after, after_failure, retries_left,
                          priority, detail, events, let_in)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 'queued',
               (value ->> 6)::bigint, (value ->> 7)::double precision, value ->> 8, value ->> 9,
               value ->> 10, value ->> 11, value ->> 12, (value ->> 13)::boolean,
               (value ->> 14)::bigint, (value ->> 15)::bigint, value ->> 16, 1,
               CASE WHEN go THEN 1 ELSE 0 END
        FROM jsonb_array_elements(given) WITH ORDINALITY g (value, place)
        ORDER BY place
        ON CONFLICT (id) DO NOTHING
        RETURNING task.*
    LOOP
        INSERT INTO event (task, number, at, kind, data) VALUES (made.seq, 1, now_at, 'created', '{}');
        fresh := fresh || made.seq;
        RETURN NEXT made;
    END LOOP;
    PERFORM set_config('role', 'none', true);
    IF fresh = '{}' THEN
        RETURN;
    END IF;
    IF go THEN
        PERFORM procrastinate_defer_jobs_v1(
            (SELECT array_agg(job_of(engine_task, t.id, t.attempt, t.route) ORDER BY t.priority DESC, t.seq)
             FROM task t WHERE t.seq = ANY(fresh)));
    ELSE
        PERFORM dispatch(engine_task, now_at, latest, '{}', fresh, reserve);
    END IF;
    PERFORM pg_notify('backburner', notice);
END
$$;

CREATE FUNCTION claim_at_once(known BIGINT, notice TEXT, asked_at BIGINT, given JSONB)
RETURNS SETOF task LANGUAGE plpgsql AS $$
DECLARE
    now_at BIGINT := asked_at + take_turn(known);
    begun task;
BEGIN
    FOR begun IN SELECT * FROM claim_tasks(now_at, given) LOOP
        INSERT INTO event (task, number, at, kind, data)
        SELECT begun.seq, begun.events, now_at, 'started', w.value ->> 9
        FROM jsonb_array_elements(given) w (value) WHERE w.value ->> 0 = begun.id;
        RETURN NEXT begun;
    END LOOP;
    IF FOUND THEN
        PERFORM pg_notify('backburner', notice);
    END IF;
END
$$;
