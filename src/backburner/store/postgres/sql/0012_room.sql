-- The limit of an owner is of what machines have, and not of what waits for one.

DROP FUNCTION owner_room(TEXT);

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

-- Let in so many on a route: owners take turns, and of an owner its sessions, so that nobody waits
-- behind the ten thousand tasks of another one. One that may have no more running is passed over.
CREATE OR REPLACE FUNCTION let_in_on(on_route TEXT, places BIGINT)
RETURNS TABLE (id TEXT, attempt BIGINT, route TEXT) LANGUAGE plpgsql AS $$
DECLARE
    who TEXT := coalesce((SELECT u.last FROM turn u WHERE u.route = on_route AND u.owner = ''), '');
    passed_over TEXT[] := '{}';
    in_a_row BIGINT := 0;
    room BIGINT;
    chosen BIGINT;
    its_session TEXT;
BEGIN
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
