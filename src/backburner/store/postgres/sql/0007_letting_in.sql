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
