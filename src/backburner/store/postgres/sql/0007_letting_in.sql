-- What is not let in has no job that anybody could fetch. An attempt may have come to the engine twice,
-- because who fetched it was silent and came back, or because a crash of the database has undone the
-- fetch: a second job that stayed would stand in the way of the next one, and with it of every commit
-- that lets that task in.

CREATE FUNCTION call_back() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM procrastinate_cancel_job_v1(j.id, false, true) FROM procrastinate_jobs j
    WHERE j.queueing_lock = OLD.id || ':' || OLD.attempt AND j.status = 'todo';
    RETURN NULL;
END
$$;
CREATE TRIGGER call_back AFTER UPDATE OF let_in ON task FOR EACH ROW
WHEN (NEW.let_in < OLD.let_in)
EXECUTE FUNCTION call_back();

SELECT procrastinate_cancel_job_v1(j.id, false, true)
FROM procrastinate_jobs j JOIN task t ON j.queueing_lock = t.id || ':' || t.attempt
WHERE j.status = 'todo' AND t.let_in < t.attempt;

-- The same as before, of machines that were heard of: of one that has died nobody has taken the places
-- back, and what is let in for them only keeps others waiting.
CREATE OR REPLACE FUNCTION route_room(on_route TEXT, reserve BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
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
           WHERE on_route = ANY(n.routes) AND NOT n.draining
             AND greatest(w.last_heartbeat, n.seen_at)
                 >= clock_timestamp() - n.silent_s * interval '1 second');
END
$$;

-- Nodes that are dead, and of which nothing is left to see to: who comes back says anew who it is. A
-- worker is missed for a day.
CREATE VIEW node_gone AS
SELECT n.id, n.silent_s FROM node n LEFT JOIN procrastinate_workers w ON w.id = n.worker
WHERE greatest(w.last_heartbeat, n.seen_at) < clock_timestamp()
          - greatest(n.silent_s * interval '1 second',
                     CASE n.kind WHEN 'worker' THEN interval '1 day' ELSE interval '0' END)
  AND NOT EXISTS (SELECT 1 FROM task t WHERE t.node = n.id AND t.node IS NOT NULL
                  AND (t.finished_at IS NULL OR t.leftovers > 0));

-- Who has something waiting on a route, and perhaps room for it: at least these. Without it each look
-- would ask anew of every owner that has reached its limit, while all machines wait for the lock. Who
-- has no room when its turn comes is full up, until one of its tasks gives up a place or the limits
-- change; who has nothing waiting any more goes when its turn comes.
CREATE TABLE contender (
    route   TEXT COLLATE "C" NOT NULL,
    owner   identifier NOT NULL,
    full_up BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (route, owner)
);
CREATE INDEX contender_open ON contender (route, owner) WHERE NOT full_up;
CREATE INDEX contender_full_up ON contender (owner) WHERE full_up;
ALTER TABLE contender ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION contend() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        UPDATE contender c SET full_up = false WHERE c.owner = NEW.owner AND c.full_up;
    END IF;
    IF NOT NEW.held AND NEW.route IS NOT NULL THEN
        INSERT INTO contender (route, owner) VALUES (NEW.route, NEW.owner) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER contend AFTER INSERT ON task FOR EACH ROW
WHEN (NEW.state = 'queued' AND NOT NEW.held AND NEW.let_in < NEW.attempt)
EXECUTE FUNCTION contend();
-- Whatever comes to wait, or to wait elsewhere, and has given up its place with that. What ends gives it
-- up in `release_held`, which hears of many at once.
CREATE TRIGGER contend_again AFTER UPDATE OF state, attempt, let_in, held, route ON task FOR EACH ROW
WHEN (NEW.state = 'queued' AND NEW.let_in < NEW.attempt
      AND (OLD.state <> 'queued' OR OLD.let_in >= OLD.attempt OR OLD.held
           OR NEW.route IS DISTINCT FROM OLD.route))
EXECUTE FUNCTION contend();

CREATE FUNCTION contend_anew() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE contender c SET full_up = false WHERE c.full_up;
    RETURN NULL;
END
$$;
CREATE TRIGGER contend_anew AFTER INSERT OR UPDATE OR DELETE ON owner_limit FOR EACH STATEMENT
EXECUTE FUNCTION contend_anew();

INSERT INTO contender (route, owner)
SELECT DISTINCT t.route, t.owner FROM task t
WHERE t.state = 'queued' AND NOT t.held AND t.let_in < t.attempt AND t.route IS NOT NULL;

-- What has waited for others that have ended, or for its time, waits for them no more; and their owners
-- have a place more.
CREATE OR REPLACE FUNCTION release_held(now_at BIGINT, latest BIGINT, ended TEXT[], fresh BIGINT[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ended <> '{}' THEN
        UPDATE contender c SET full_up = false
        WHERE c.full_up AND c.owner IN (SELECT t.owner FROM task t WHERE t.id = ANY(ended));
    END IF;
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

-- The owner whose turn it is on a route, after another one: by name, and then from the beginning. None
-- that is full up.
CREATE OR REPLACE FUNCTION next_owner(on_route TEXT, after_owner TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    found TEXT;
BEGIN
    SELECT c.owner INTO found FROM contender c
    WHERE c.route = on_route AND NOT c.full_up AND c.owner > after_owner ORDER BY c.owner LIMIT 1;
    IF found IS NULL THEN
        SELECT c.owner INTO found FROM contender c
        WHERE c.route = on_route AND NOT c.full_up ORDER BY c.owner LIMIT 1;
    END IF;
    RETURN found;
END
$$;

-- Let in so many on a route: owners take turns, and of an owner its sessions, so that nobody waits
-- behind the ten thousand tasks of another one. One that may have no more running is passed over.
CREATE OR REPLACE FUNCTION let_in_on(on_route TEXT, places BIGINT)
RETURNS TABLE (id TEXT, attempt BIGINT, route TEXT) LANGUAGE plpgsql AS $$
DECLARE
    who TEXT := coalesce((SELECT u.last FROM turn u WHERE u.route = on_route AND u.owner = ''), '');
    last_in TEXT;
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
        DELETE FROM contender c WHERE c.route = on_route;
        RETURN;
    END IF;
    WHILE places > 0 LOOP
        who := next_owner(on_route, who);
        EXIT WHEN who IS NULL;
        chosen := next_of_owner(on_route, who);
        IF chosen IS NULL THEN
            DELETE FROM contender c WHERE c.route = on_route AND c.owner = who;
            CONTINUE;
        END IF;
        IF owner_room(who, on_route) <= 0 THEN
            UPDATE contender c SET full_up = true WHERE c.route = on_route AND c.owner = who;
            CONTINUE;
        END IF;
        last_in := who;
        UPDATE task t SET let_in = t.attempt, node = NULL WHERE t.seq = chosen
        RETURNING t.id, t.attempt, t.route, t.session INTO id, attempt, route, its_session;
        RETURN NEXT;
        places := places - 1;
        INSERT INTO turn AS u (route, owner, last) VALUES (on_route, who, its_session)
        ON CONFLICT ON CONSTRAINT turn_pkey DO UPDATE SET last = excluded.last;
        IF next_of_owner(on_route, who) IS NULL THEN
            DELETE FROM turn u WHERE u.route = on_route AND u.owner = who;
            DELETE FROM contender c WHERE c.route = on_route AND c.owner = who;
        END IF;
    END LOOP;
    IF last_in IS NOT NULL THEN
        INSERT INTO turn AS u (route, owner, last) VALUES (on_route, '', last_in)
        ON CONFLICT ON CONSTRAINT turn_pkey DO UPDATE SET last = excluded.last;
    END IF;
END
$$;
