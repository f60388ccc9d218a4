-- Environments and keys lie apart from the rows that name them, and go when they were used at the
-- latest with what they belong to. A text that begins with `secret:` is put here, whichever
-- statement writes it, and its row gets a name instead.

CREATE TABLE secret (
    name    identifier PRIMARY KEY,
    content TEXT NOT NULL
);

CREATE FUNCTION keep_apart(content TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    name TEXT := 'sx_' || replace(gen_random_uuid()::text, '-', '');
BEGIN
    INSERT INTO secret VALUES (name, substr(content, length('secret:') + 1));
    RETURN name;
END
$$;

-- Where the row is there already nothing is inserted, and must not be kept either.
CREATE FUNCTION keep_launch_of_task() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' OR NOT EXISTS (SELECT 1 FROM task WHERE id = NEW.id) THEN
        NEW.hand_over := keep_apart(NEW.hand_over);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_launch BEFORE INSERT OR UPDATE OF hand_over ON task FOR EACH ROW
WHEN (starts_with(NEW.hand_over, 'secret:')) EXECUTE FUNCTION keep_launch_of_task();

CREATE FUNCTION keep_launch_of_schedule() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM schedule WHERE id = NEW.id) THEN
        NEW.hand_over := keep_apart(NEW.hand_over);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_launch BEFORE INSERT ON schedule FOR EACH ROW
WHEN (starts_with(NEW.hand_over, 'secret:')) EXECUTE FUNCTION keep_launch_of_schedule();

CREATE FUNCTION keep_launch_of_worker() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.hand_over := keep_apart(NEW.hand_over);
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_launch BEFORE INSERT OR UPDATE OF hand_over ON worker FOR EACH ROW
WHEN (starts_with(NEW.hand_over, 'secret:')) EXECUTE FUNCTION keep_launch_of_worker();

CREATE FUNCTION keep_key_of_channel() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM channel WHERE owner = NEW.owner AND name = NEW.name) THEN
        NEW.secret := keep_apart(NEW.secret);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keep_key BEFORE INSERT ON channel FOR EACH ROW
WHEN (starts_with(NEW.secret, 'secret:')) EXECUTE FUNCTION keep_key_of_channel();

CREATE FUNCTION forget_launch() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM secret WHERE name = OLD.hand_over;
    RETURN NULL;
END
$$;
CREATE TRIGGER task_needs_no_launch AFTER UPDATE OF state ON task FOR EACH ROW
WHEN (NEW.finished_at IS NOT NULL AND OLD.hand_over IS NOT NULL) EXECUTE FUNCTION forget_launch();
CREATE TRIGGER task_has_another_launch AFTER UPDATE OF hand_over ON task FOR EACH ROW
WHEN (OLD.hand_over IS DISTINCT FROM NEW.hand_over AND OLD.hand_over IS NOT NULL)
EXECUTE FUNCTION forget_launch();
CREATE TRIGGER schedule_needs_no_launch AFTER UPDATE OF state ON schedule FOR EACH ROW
WHEN (NEW.ended_at IS NOT NULL AND OLD.hand_over IS NOT NULL) EXECUTE FUNCTION forget_launch();
CREATE TRIGGER worker_has_another_launch AFTER UPDATE OF hand_over ON worker FOR EACH ROW
WHEN (OLD.hand_over IS DISTINCT FROM NEW.hand_over AND OLD.hand_over IS NOT NULL)
EXECUTE FUNCTION forget_launch();
CREATE TRIGGER worker_needs_no_launch AFTER DELETE ON worker FOR EACH ROW
WHEN (OLD.hand_over IS NOT NULL) EXECUTE FUNCTION forget_launch();

CREATE FUNCTION forget_key() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM secret WHERE name = OLD.secret;
    RETURN NULL;
END
$$;
CREATE TRIGGER channel_needs_no_key AFTER DELETE ON channel FOR EACH ROW
WHEN (OLD.secret IS NOT NULL) EXECUTE FUNCTION forget_key();
