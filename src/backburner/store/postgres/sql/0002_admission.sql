-- Whose turn it is to be let in: which task goes first, how many of an owner run at once, and what
-- waits for others or for its time.

-- The empty name stands for every owner that is not here.
CREATE TABLE owner_limit (
    owner   identifier PRIMARY KEY,
    running BIGINT NOT NULL CHECK (running >= 1)
);

CREATE INDEX task_waiting ON task (route, owner, priority DESC, session, seq)
    WHERE state = 'queued' AND NOT held AND let_in < attempt AND route IS NOT NULL;
CREATE INDEX task_let_in ON task (route, owner)
    WHERE state = 'queued' AND let_in = attempt;
CREATE INDEX task_let_in_of_owner ON task (owner) WHERE state = 'queued' AND let_in = attempt;
CREATE INDEX task_of_queue_let_in ON task (queue)
    WHERE queue IS NOT NULL AND state = 'queued' AND let_in = attempt;
CREATE INDEX task_held_until ON task (not_before)
    WHERE held AND state = 'queued' AND not_before IS NOT NULL;

-- Who waits for whose end; else each end would have to look at everything that waits.
CREATE TABLE precedence (
    other identifier NOT NULL,
    task  BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    PRIMARY KEY (other, task)
);
CREATE INDEX precedence_of_task ON precedence (task);

CREATE FUNCTION hold_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.held := true;
    RETURN NEW;
END
$$;
CREATE TRIGGER hold_back BEFORE INSERT ON task FOR EACH ROW
WHEN (NEW.state = 'queued' AND (NEW.after IS NOT NULL OR NEW.not_before IS NOT NULL))
EXECUTE FUNCTION hold_back();

-- The same of a further attempt, which is no node's until it is let in. After the change: with a trigger
-- before it every change of any task would find out its route anew.
CREATE FUNCTION hold_back_again() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE task SET held = true, node = NULL WHERE seq = NEW.seq;
    RETURN NULL;
END
$$;
CREATE TRIGGER hold_back_again AFTER UPDATE OF not_before ON task FOR EACH ROW
WHEN (NEW.state = 'queued' AND NOT NEW.held AND (NEW.after IS NOT NULL OR NEW.not_before IS NOT NULL))
EXECUTE FUNCTION hold_back_again();

CREATE FUNCTION note_precedence() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO precedence (other, task)
    SELECT DISTINCT a.id, NEW.seq FROM json_array_elements_text(NEW.after::json) a (id);
    RETURN NULL;
END
$$;
CREATE TRIGGER note_precedence AFTER INSERT ON task FOR EACH ROW WHEN (NEW.after IS NOT NULL)
EXECUTE FUNCTION note_precedence();

-- The owner that was let in last on a route, and of an owner its session; with an empty owner the
-- former. Only owners that have more waiting are here.
CREATE TABLE turn (
    route TEXT COLLATE "C" NOT NULL,
    owner identifier NOT NULL,
    last  identifier NOT NULL,
    PRIMARY KEY (route, owner)
);

-- What has waited for others that have ended, or for its time, waits for them no more.
CREATE FUNCTION release_held(now_at BIGINT, latest BIGINT, ended TEXT[], fresh BIGINT[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE task t SET held = false
    WHERE t.held AND t.state = 'queued'
      AND t.seq IN (SELECT p.task FROM precedence p WHERE p.other = ANY(ended)
                    UNION ALL SELECT unnest(fresh)
                    UNION ALL SELECT d.seq FROM task d
                              WHERE d.held AND d.state = 'queued' AND d.not_before <= now_at
                    UNION ALL SELECT d.seq FROM task d
                              WHERE d.held AND d.state = 'queued' AND d.not_before > latest)
      AND (t.not_before IS NULL OR t.not_before <= now_at OR t.not_before > latest)
      AND NOT EXISTS (SELECT 1 FROM json_array_elements_text(t.after::json) a (id)
                      JOIN task d ON d.id = a.id WHERE d.finished_at IS NULL);
END
$$;

-- How many more of an owner may be let in on a route; NULL where it has no limit. What waits on another
-- route for a machine that may never come keeps nothing here from running: who takes a task looks at the
-- limit again.
CREATE FUNCTION owner_room(who TEXT, on_route TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    most BIGINT;
BEGIN
    SELECT l.running INTO most FROM owner_limit l WHERE l.owner IN (who, '')
    ORDER BY l.owner = '' LIMIT 1;
    IF most IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN most
        - (SELECT count(*) FROM task r WHERE r.owner = who AND r.state IN ('running', 'input_required'))
        - (SELECT count(*) FROM task r WHERE r.owner = who AND r.state = 'queued' AND r.let_in = r.attempt
           AND (r.node IS NOT NULL OR r.route = on_route));
END
$$;

-- How many more of a queue may be let in; NULL where nothing is to wait for.
CREATE FUNCTION queue_room(line TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    IF line IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT CASE WHEN q.paused THEN 0 ELSE q.width END FROM queue q WHERE q.name = line)
        - (SELECT count(*) FROM task r WHERE r.queue = line AND r.state IN ('running', 'input_required'))
        - (SELECT count(*) FROM task r
           WHERE r.queue = line AND r.queue IS NOT NULL AND r.state = 'queued' AND r.let_in = r.attempt);
END
$$;

-- The next task on a route of this owner: of the highest priority, of the session whose turn it is,
-- the oldest.
CREATE FUNCTION next_of_owner(on_route TEXT, who TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    top BIGINT;
    found BIGINT;
    after_session TEXT;
BEGIN
    SELECT t.priority INTO top FROM task t
    WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
      AND t.route = on_route AND t.owner = who
    ORDER BY t.priority DESC LIMIT 1;
    SELECT u.last INTO after_session FROM turn u WHERE u.route = on_route AND u.owner = who;
    IF after_session IS NOT NULL THEN
        SELECT t.seq INTO found FROM task t
        WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
          AND t.route = on_route AND t.owner = who AND t.priority = top AND t.session > after_session
        ORDER BY t.session, t.seq LIMIT 1;
    END IF;
    IF found IS NULL THEN
        SELECT t.seq INTO found FROM task t
        WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
          AND t.route = on_route AND t.owner = who AND t.priority = top
        ORDER BY t.session, t.seq LIMIT 1;
    END IF;
    RETURN found;
END
$$;

-- The owner whose turn it is on a route, after another one: by name, and then from the beginning.
CREATE FUNCTION next_owner(on_route TEXT, after_owner TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    found TEXT;
BEGIN
    SELECT t.owner INTO found FROM task t
    WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
      AND t.route = on_route AND t.owner > after_owner
    ORDER BY t.owner LIMIT 1;
    IF found IS NULL THEN
        SELECT t.owner INTO found FROM task t
        WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
          AND t.route = on_route
        ORDER BY t.owner LIMIT 1;
    END IF;
    RETURN found;
END
$$;

-- Let in so many on a route: owners take turns, and of an owner its sessions, so that nobody waits
-- behind the ten thousand tasks of another one. One that may have no more running is passed over.
CREATE FUNCTION let_in_on(on_route TEXT, places BIGINT)
RETURNS TABLE (id TEXT, attempt BIGINT, route TEXT) LANGUAGE plpgsql AS $$
DECLARE
    who TEXT := coalesce((SELECT u.last FROM turn u WHERE u.route = on_route AND u.owner = ''), '');
    passed_over TEXT[] := '{}';
    in_a_row BIGINT := 0;
    room BIGINT;
    chosen BIGINT;
    its_session TEXT;
BEGIN
    IF places <= 0 THEN  -- below nothing where more was let in than has room now
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM owner_limit) AND places >= (
        SELECT count(*) FROM (SELECT 1 FROM task t
                              WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
                                AND t.route = on_route LIMIT places + 1) AS waiting) THEN
        RETURN QUERY  -- there is room for all, and nobody's turn to wait for
            WITH all_of_them AS (
                UPDATE task t SET let_in = t.attempt, node = NULL
                WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt AND t.route = on_route
                RETURNING t.id, t.attempt, t.route, t.owner, t.priority, t.seq)
            SELECT a.id::text, a.attempt, a.route FROM all_of_them a
            ORDER BY row_number() OVER (PARTITION BY a.owner ORDER BY a.priority DESC, a.seq), a.owner;
        DELETE FROM turn u WHERE u.route = on_route AND u.owner <> '';
        RETURN;
    END IF;
    WHILE places > 0 LOOP
        who := next_owner(on_route, who);
        EXIT WHEN who IS NULL;
        room := owner_room(who, on_route);
        IF room <= 0 THEN
            EXIT WHEN who = ANY(passed_over) AND in_a_row >= cardinality(passed_over);
            IF who <> ALL(passed_over) THEN
                passed_over := passed_over || who;
            END IF;
            in_a_row := in_a_row + 1;
            CONTINUE;
        END IF;
        in_a_row := 0;
        chosen := next_of_owner(on_route, who);
        UPDATE task t SET let_in = t.attempt, node = NULL WHERE t.seq = chosen
        RETURNING t.id, t.attempt, t.route, t.session INTO id, attempt, route, its_session;
        RETURN NEXT;
        places := places - 1;
        INSERT INTO turn AS u (route, owner, last) VALUES (on_route, who, its_session)
        ON CONFLICT ON CONSTRAINT turn_pkey DO UPDATE SET last = excluded.last;
        IF next_of_owner(on_route, who) IS NULL THEN
            DELETE FROM turn u WHERE u.route = on_route AND u.owner = who;
        END IF;
    END LOOP;
    IF who IS NOT NULL THEN
        INSERT INTO turn AS u (route, owner, last) VALUES (on_route, '', who)
        ON CONFLICT ON CONSTRAINT turn_pkey DO UPDATE SET last = excluded.last;
    END IF;
END
$$;

-- How many more may be let in on a route beside those that are: about as many as machines have places
-- for, and a few more, so that nobody waits for a round trip.
CREATE FUNCTION route_room(on_route TEXT, reserve BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    RETURN reserve
        - (SELECT count(*) FROM task t
           WHERE t.route = on_route AND t.state = 'queued' AND t.let_in = t.attempt AND t.node IS NULL)
        + (SELECT coalesce(sum(greatest(n.places - (
                      SELECT count(*) FROM task h
                      WHERE h.node = n.id AND h.node IS NOT NULL
                        AND (h.finished_at IS NULL OR h.leftovers > 0)
                        AND h.finished_at IS NULL), 0)), 0)
           FROM node n JOIN procrastinate_workers w ON w.id = n.worker
           WHERE on_route = ANY(n.routes) AND NOT n.draining);
END
$$;

-- Everything that may go to the engine now. What waits for another task in vain goes at once: a machine
-- ends it.
CREATE FUNCTION admit(now_at BIGINT, latest BIGINT, ended TEXT[], fresh BIGINT[], reserve BIGINT)
RETURNS TABLE (id TEXT, attempt BIGINT, route TEXT) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$  -- else some of it is planned anew each time
DECLARE
    on_route TEXT := '';
    line_room BIGINT;
BEGIN
    PERFORM release_held(now_at, latest, ended, fresh);
    RETURN QUERY
        UPDATE task t SET let_in = t.attempt, node = NULL, held = false
        WHERE t.held AND t.state = 'queued' AND t.route IS NOT NULL AND t.let_in < t.attempt
          AND NOT t.after_failure
          AND t.seq IN (SELECT p.task FROM precedence p WHERE p.other = ANY(ended)
                        UNION ALL SELECT unnest(fresh))
          AND EXISTS (SELECT 1 FROM json_array_elements_text(t.after::json) a (id)
                      JOIN task d ON d.id = a.id
                      WHERE d.finished_at IS NOT NULL AND d.state <> 'succeeded')
        RETURNING t.id::text, t.attempt, t.route;
    LOOP
        SELECT t.route INTO on_route FROM task t
        WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt
          AND t.route > on_route
        ORDER BY t.route LIMIT 1;
        EXIT WHEN NOT FOUND;
        line_room := queue_room((
            SELECT t.queue FROM task t
            WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt AND t.route = on_route
            LIMIT 1));
        RETURN QUERY SELECT * FROM let_in_on(on_route, least(route_room(on_route, reserve), line_room));
    END LOOP;
END
$$;
