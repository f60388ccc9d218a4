-- Tools and agents: applications carry them out, as workers of the engine under names of their own.

-- What a process says of itself, which carries out work of this record.
ALTER TABLE node
    ADD COLUMN kind     TEXT NOT NULL DEFAULT 'worker' CHECK (kind IN ('worker', 'application')),
    ADD COLUMN machine  TEXT NOT NULL DEFAULT '',
    ADD COLUMN pid      BIGINT NOT NULL DEFAULT 0,
    -- It is dead when it was not heard of for so long.
    ADD COLUMN silent_s DOUBLE PRECISION NOT NULL DEFAULT 30 CHECK (silent_s > 0),
    -- JSON lists of names.
    ADD COLUMN queues   TEXT NOT NULL DEFAULT '[]',
    ADD COLUMN tools    TEXT NOT NULL DEFAULT '[]',
    ADD COLUMN agents   TEXT NOT NULL DEFAULT '[]';

-- Tools and agents that can be asked for by name, whoever has them at present: a JSON document each.
CREATE TABLE offer (
    kind     TEXT NOT NULL CHECK (kind IN ('tool', 'agent')),
    name     identifier NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);
GRANT SELECT ON offer TO backburner_tenant;

-- The queue of the engine that a task goes to: that of one node, that of everybody who has its tool
-- or agent, or its own; see store/engine.py. What a tool or an agent is called stands first in its
-- specification, and is taken as it is spelled there: not every JSON that we write can be read here.
CREATE FUNCTION route_of(node TEXT, queue TEXT, kind TEXT, hand_over TEXT, spec TEXT) RETURNS TEXT
IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT CASE
        WHEN node IS NOT NULL THEN 'node:' || node
        WHEN kind IN ('tool', 'agent') AND hand_over IS NULL THEN
            kind || ':' || CASE WHEN octet_length(called) <= 32 THEN called ELSE md5(called) END
        WHEN hand_over IS NULL THEN NULL
        WHEN queue IS NULL THEN 'default'
        WHEN octet_length(queue) <= 32 THEN queue
        ELSE md5(queue) END
    FROM coalesce(substring(spec FROM '^{"' || kind || '":"((?:[^"\\]|\\.)*)"'), '') AS called
$$;

DROP INDEX task_waiting;
DROP INDEX task_let_in;
ALTER TABLE task DROP COLUMN route;
ALTER TABLE task
    -- The one node that is to take it, where another one could not.
    ADD COLUMN sent_to identifier,
    -- The nodes that could not carry it out.
    ADD COLUMN refused TEXT[] NOT NULL DEFAULT '{}',
    ADD COLUMN route   TEXT COLLATE "C"
        GENERATED ALWAYS AS (route_of(sent_to, queue, kind, hand_over, spec)) STORED;
CREATE INDEX task_waiting ON task (route, owner, priority DESC, session, seq)
    WHERE state = 'queued' AND NOT held AND let_in < attempt AND route IS NOT NULL;
CREATE INDEX task_let_in ON task (route, owner)
    WHERE state = 'queued' AND let_in = attempt;
CREATE INDEX task_sent ON task (sent_to) WHERE sent_to IS NOT NULL AND state = 'queued';
