-- What is done for a session of an owner is done as `backburner_tenant`, with the owner in
-- `backburner.owner`, and the database lets that role touch nothing of anybody else, whatever the
-- statement forgets to say. Workers, and whoever administers, are the owner of the tables.

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'backburner_tenant') THEN
        CREATE ROLE backburner_tenant NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this server was quicker
END
$$;
DO $$
BEGIN
    -- From 16 on who makes a role is its member, and may not act as it.
    IF NOT pg_has_role(current_user, 'backburner_tenant', CASE
        WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
    THEN
        GRANT backburner_tenant TO CURRENT_USER;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO backburner_tenant', current_schema());
END
$$;

CREATE FUNCTION present_owner() RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE
RETURN current_setting('backburner.owner', true);

ALTER TABLE task ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON task TO backburner_tenant USING (owner = present_owner());
GRANT SELECT, INSERT, UPDATE ON task TO backburner_tenant;

ALTER TABLE signal ENABLE ROW LEVEL SECURITY;
-- About a task of its owner only: its key is made of that task's id, and would take the place of what the
-- task's own owner is to be told.
CREATE POLICY of_owner ON signal TO backburner_tenant USING (owner = present_owner())
WITH CHECK (owner = present_owner() AND EXISTS (SELECT 1 FROM task WHERE task.seq = signal.task));
GRANT SELECT, INSERT, UPDATE ON signal TO backburner_tenant;

ALTER TABLE schedule ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON schedule TO backburner_tenant USING (owner = present_owner());
GRANT SELECT, INSERT, UPDATE ON schedule TO backburner_tenant;

ALTER TABLE channel ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON channel TO backburner_tenant USING (owner = present_owner());
GRANT SELECT, INSERT, UPDATE, DELETE ON channel TO backburner_tenant;

ALTER TABLE wish ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON wish TO backburner_tenant USING (owner = present_owner());
GRANT SELECT, INSERT, UPDATE, DELETE ON wish TO backburner_tenant;

ALTER TABLE ended_session ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON ended_session TO backburner_tenant USING (owner = present_owner());
GRANT SELECT, INSERT, UPDATE, DELETE ON ended_session TO backburner_tenant;

-- The limit of all others is everybody's to know.
ALTER TABLE owner_limit ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON owner_limit TO backburner_tenant USING (owner IN (present_owner(), ''));
GRANT SELECT ON owner_limit TO backburner_tenant;

-- What belongs to a task or a schedule is seen by who sees that.
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON event TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = event.task));
GRANT SELECT, INSERT ON event TO backburner_tenant;

ALTER TABLE question ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON question TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = question.task));
GRANT SELECT, INSERT, UPDATE ON question TO backburner_tenant;

ALTER TABLE message ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON message TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = message.task));
GRANT SELECT, INSERT ON message TO backburner_tenant;

ALTER TABLE input ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON input TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = input.task));
GRANT SELECT, INSERT, DELETE ON input TO backburner_tenant;

ALTER TABLE attachment ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON attachment TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = attachment.task));
GRANT SELECT, INSERT ON attachment TO backburner_tenant;

ALTER TABLE mirror ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON mirror TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = mirror.task));
GRANT SELECT ON mirror TO backburner_tenant;

ALTER TABLE mirror_piece ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON mirror_piece TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = mirror_piece.task));
GRANT SELECT ON mirror_piece TO backburner_tenant;

ALTER TABLE artifacts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON artifacts TO backburner_tenant
USING (EXISTS (SELECT 1 FROM task WHERE task.seq = artifacts.task));
GRANT SELECT ON artifacts TO backburner_tenant;

ALTER TABLE firing ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON firing TO backburner_tenant
USING (EXISTS (SELECT 1 FROM schedule WHERE schedule.seq = firing.schedule));
GRANT SELECT ON firing TO backburner_tenant;

-- Of owners, and for none of them: without a policy a grant by mistake shows nothing either.
ALTER TABLE token ENABLE ROW LEVEL SECURITY;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE turn ENABLE ROW LEVEL SECURITY;
ALTER TABLE precedence ENABLE ROW LEVEL SECURITY;
ALTER TABLE artifacts_left ENABLE ROW LEVEL SECURITY;

-- Of everybody, and nobody's secret.
GRANT SELECT ON queue, offer TO backburner_tenant;
