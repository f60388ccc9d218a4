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
