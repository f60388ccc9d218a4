-- The whole record: tasks, what they wait for, their events, questions, messages and signals; what
-- outlives them. What must never be true is refused here, whatever the program above believes.
-- Names and keys are compared byte by byte, as everywhere in Backburner.

-- `oldest` is the oldest program that still understands what is written: so an upgrade can go
-- from machine to machine.
CREATE TABLE format (
    alone  BOOLEAN PRIMARY KEY DEFAULT true CHECK (alone),
    number INTEGER NOT NULL,
    oldest INTEGER NOT NULL CHECK (oldest <= number)
);

-- What each writer has committed last: one that was cut off meanwhile finds out here.
CREATE TABLE commitment (
    writer TEXT PRIMARY KEY,
    number BIGINT NOT NULL,
    at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

CREATE DOMAIN identifier AS TEXT COLLATE "C" CHECK (octet_length(VALUE) <= 1000);
-- Microseconds since 1970, in UTC.
CREATE DOMAIN instant AS BIGINT;

CREATE TABLE queue (
    name   identifier PRIMARY KEY,
    width  BIGINT NOT NULL CHECK (width >= 1),
    paused BOOLEAN NOT NULL DEFAULT false
);

-- The queue of the engine that a task goes to: that of everybody who has its tool or agent, or its own,
-- or what one node has of that; see store/engine.py. What a tool or an agent is called stands first in
-- its specification, and is taken as it is spelled there: not every JSON that we write can be read here.
CREATE FUNCTION route_of(node TEXT, queue TEXT, kind TEXT, hand_over TEXT, spec TEXT) RETURNS TEXT
IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    called TEXT;
    route TEXT;
BEGIN
    IF hand_over IS NOT NULL THEN
        route := CASE WHEN queue IS NULL THEN 'default'
                      WHEN octet_length(queue) <= 32 THEN queue ELSE md5(queue) END;
    ELSIF kind IN ('tool', 'agent') THEN
        called := coalesce(substring(spec FROM '^{"' || kind || '":"((?:[^"\\]|\\.)*)"'), '');
        route := kind || ':' || CASE WHEN octet_length(called) <= 32 THEN called ELSE md5(called) END;
    END IF;
    RETURN CASE WHEN node IS NULL THEN route ELSE 'node:' || md5(node || ':' || route) END;
END
$$;

CREATE TABLE task (
    seq           BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id            identifier NOT NULL UNIQUE,
    owner         identifier NOT NULL,
    session       identifier NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('shell', 'python', 'tool', 'agent')),
    title         TEXT NOT NULL,
    spec          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN
                      ('queued', 'running', 'input_required', 'succeeded', 'failed', 'canceled')),
    attempt       BIGINT NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    created_at    instant NOT NULL,
    started_at    instant,
    finished_at   instant,
    max_runtime_s DOUBLE PRECISION,
    detail        TEXT,
    progress      TEXT,
    ready_at      instant,
    parked_at     instant,
    exit_code     BIGINT,
    error_kind    TEXT CHECK (error_kind IN
                      ('error', 'exit', 'timeout', 'orphaned', 'killed', 'spawn')),
    error_message TEXT,
    summary       TEXT,
    result        TEXT,
    boot_id       TEXT,
    started_boot  BIGINT,
    pid           BIGINT,
    cgroup        TEXT,
    stop_at       instant,
    stop_grace_s  DOUBLE PRECISION,
    ended_for     TEXT CHECK (ended_for IN ('stop', 'timeout')),
    output_bytes  BIGINT NOT NULL DEFAULT 0,
    dropped_bytes BIGINT NOT NULL DEFAULT 0,
    leftovers     BIGINT NOT NULL DEFAULT 0 CHECK (leftovers >= 0),
    parent        identifier,
    schedule      identifier,
    hand_over     TEXT,
    events        BIGINT NOT NULL DEFAULT 0,
    queue         identifier REFERENCES queue (name),
    -- A JSON list of ids.
    after         TEXT,
    after_failure BOOLEAN NOT NULL DEFAULT false,
    retries_left  BIGINT NOT NULL DEFAULT 0 CHECK (retries_left >= 0),
    failures      BIGINT NOT NULL DEFAULT 0,
    not_before    instant,
    -- The cgroup that limits the memory of the attempt, where one does.
    memory_cgroup TEXT,
    -- How much of what the job reports of itself is in the record.
    reported      BIGINT NOT NULL DEFAULT 0 CHECK (reported >= 0),
    -- Who carries the task out in itself; NULL for processes.
    worker        identifier,
    -- What a model has used for it: a JSON object.
    usage         TEXT,
    -- The attempt that the engine was given last.
    let_in        BIGINT NOT NULL DEFAULT 0,
    -- The machine that has taken it from there.
    node          identifier,
    -- The one node that is to take it, where another one could not.
    sent_to       identifier,
    -- The nodes that could not carry it out.
    refused       TEXT[] NOT NULL DEFAULT '{}',
    route         TEXT COLLATE "C"
                      GENERATED ALWAYS AS (route_of(sent_to, queue, kind, hand_over, spec)) STORED,
    -- It waits for other tasks, or for its time: `admit` says when that is over.
    held          BOOLEAN NOT NULL DEFAULT false,
    priority      BIGINT NOT NULL DEFAULT 0 CHECK (priority BETWEEN -10 AND 10),
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled'))),
    CHECK ((error_kind IS NOT NULL) = (state = 'failed')),
    CHECK ((error_kind IS NULL) = (error_message IS NULL)),
    CHECK (exit_code IS NULL OR state = 'succeeded' OR error_kind IS NOT DISTINCT FROM 'exit'),
    CHECK (state <> 'running' OR boot_id IS NOT NULL),
    CHECK (leftovers = 0 OR finished_at IS NOT NULL)
);

CREATE INDEX task_by_session ON task (owner, session, seq);
CREATE INDEX task_by_owner ON task (owner, seq);
CREATE INDEX task_by_end ON task (finished_at, seq) WHERE finished_at IS NOT NULL;
CREATE INDEX task_active ON task (owner, session, kind)
    WHERE state IN ('queued', 'running', 'input_required');
CREATE INDEX task_lingering ON task (seq) WHERE leftovers > 0;
CREATE INDEX task_queued ON task (kind, seq) WHERE state = 'queued';
CREATE INDEX task_stopping ON task (kind, seq)
    WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0);
CREATE INDEX task_running_of_queue ON task (queue)
    WHERE queue IS NOT NULL AND state IN ('running', 'input_required');
CREATE INDEX task_waiting_in_queue ON task (queue) WHERE queue IS NOT NULL AND state = 'queued';
CREATE INDEX task_of_worker ON task (worker)
    WHERE worker IS NOT NULL AND state IN ('running', 'input_required');
CREATE INDEX task_of_schedule ON task (schedule, seq) WHERE schedule IS NOT NULL;
CREATE INDEX task_by_parent ON task (parent, seq) WHERE parent IS NOT NULL;

CREATE INDEX task_running ON task (owner) WHERE state IN ('running', 'input_required');
CREATE INDEX task_of_node ON task (node, seq)
    WHERE node IS NOT NULL AND (finished_at IS NULL OR leftovers > 0);
CREATE INDEX task_sent ON task (sent_to) WHERE sent_to IS NOT NULL AND state = 'queued';

-- A stream resumes from seq. One writer at a time: so the numbers come in the order of the commits.
CREATE TABLE event (
    seq    BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    task   BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at     instant NOT NULL,
    kind   TEXT NOT NULL,
    data   TEXT NOT NULL,
    UNIQUE (task, number)
);

-- The unique key is what makes "told once" a fact of the database.
CREATE TABLE signal (
    seq          BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    key          TEXT COLLATE "C" NOT NULL UNIQUE CHECK (octet_length(key) <= 2400),
    task         BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    owner        identifier NOT NULL,
    session      identifier NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN
                     ('completed', 'failed', 'canceled', 'input_required', 'ready', 'match', 'silent',
                      'message')),
    text         TEXT NOT NULL,
    data         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN
                     ('pending', 'claimed', 'delivered', 'failed', 'dropped')),
    reason       TEXT,
    channel      identifier NOT NULL,
    tries        BIGINT NOT NULL DEFAULT 0 CHECK (tries >= 0),
    retry_at     instant,
    consumer     TEXT,
    -- By the clock of the database. Of a claimed one until when it is held; of a pending or failed
    -- one when it may be claimed.
    lease_boot   TEXT,
    lease_until  BIGINT,
    created_at   instant NOT NULL,
    delivered_at instant,
    CHECK ((delivered_at IS NOT NULL) = (state = 'delivered')),
    CHECK ((consumer IS NOT NULL) = (state = 'claimed')),
    CHECK (state <> 'dropped' OR reason IS NOT NULL)
);

CREATE INDEX signal_by_task ON signal (task);
CREATE INDEX signal_by_session ON signal (owner, session, seq);
CREATE INDEX signal_open ON signal (owner, session, seq)
    WHERE state IN ('pending', 'claimed', 'failed');
CREATE INDEX signal_claimed ON signal (consumer) WHERE state = 'claimed';
-- Two owners may have channels of one name, and neither waits for the other's.
CREATE INDEX signal_to_push ON signal (owner, channel, seq)
    WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed');

CREATE TABLE question (
    seq         BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    task        BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt     BIGINT NOT NULL,
    id          identifier NOT NULL,
    text        TEXT NOT NULL,
    asked_at    instant NOT NULL,
    answer      TEXT,
    answered_at instant,
    withdrawn   BOOLEAN NOT NULL DEFAULT false,
    -- The answer has reached the job.
    handed_on   BOOLEAN NOT NULL DEFAULT false,
    -- A JSON schema that the answer has to fit.
    schema      TEXT,
    -- Asked about the task and not by it: whether another session of the owner may stop it.
    approval    BOOLEAN NOT NULL DEFAULT false,
    -- The session that wants to, and the grace that the task then gets.
    asker       identifier CHECK ((asker IS NOT NULL) = approval),
    grace_s     DOUBLE PRECISION CHECK ((grace_s IS NOT NULL) = approval),
    UNIQUE (task, attempt, id),
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK (answer IS NULL OR NOT withdrawn)
);

CREATE INDEX question_open ON question (task) WHERE answer IS NULL AND NOT withdrawn;
CREATE INDEX question_answered ON question (task) WHERE answer IS NOT NULL AND NOT handed_on;

-- The output of attempts, as far as their bounded logs keep it, for readers on other machines.
CREATE TABLE mirror (
    task    BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    -- `marks` says how far the others were at which time.
    stream  TEXT NOT NULL CHECK (stream IN ('output', 'stderr', 'marks')),
    -- How often the job itself has emptied it: what a reader had before is of no use then.
    beginning BIGINT NOT NULL DEFAULT 0,
    -- All that was written to it since.
    total   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (task, attempt, stream)
);

-- What was written between two copies, or between several; gone when a bounded log keeps it no longer.
CREATE TABLE mirror_piece (
    task    BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    stream  TEXT NOT NULL,
    at      BIGINT NOT NULL CHECK (at >= 0),
    data    BYTEA NOT NULL,
    PRIMARY KEY (task, attempt, stream, at),
    FOREIGN KEY (task, attempt, stream) REFERENCES mirror ON DELETE CASCADE
);

-- What somebody tells a task while it runs.
CREATE TABLE message (
    seq     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    task    BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    number  BIGINT NOT NULL CHECK (number >= 1),
    text    TEXT NOT NULL,
    sent_at instant NOT NULL,
    -- The attempt that it has reached.
    taken   BIGINT CHECK (taken >= 1),
    UNIQUE (task, number)
);

CREATE INDEX message_waiting ON message (task, number) WHERE taken IS NULL;

-- What somebody gives to the input of a command on another machine.
CREATE TABLE input (
    seq     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    task    BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    -- NULL is the end. Gone when it was handed on.
    data    BYTEA,
    -- What became of it: empty where the job has it, else an error as JSON.
    outcome TEXT
);

CREATE INDEX input_waiting ON input (task, seq) WHERE outcome IS NULL;

-- The files that go with a prompt for an agent on another machine, until it has answered.
CREATE TABLE attachment (
    task       BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    number     BIGINT NOT NULL,
    name       TEXT,
    media_type TEXT NOT NULL,
    data       BYTEA NOT NULL,
    PRIMARY KEY (task, number)
);
-- Pictures, which do not become smaller.
ALTER TABLE attachment ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE FUNCTION forget_attachments() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM attachment WHERE task = NEW.seq;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_attachments AFTER UPDATE OF state ON task FOR EACH ROW
WHEN (NEW.finished_at IS NOT NULL AND NEW.kind = 'agent') EXECUTE FUNCTION forget_attachments();

-- The files that tasks have added, for readers on other machines.

CREATE TABLE artifacts (
    task    BIGINT NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    -- The address that all machines read; empty where the files stay on the machine of the task.
    place   TEXT NOT NULL,
    -- Below that address, where no other task ever has it; else a folder of that machine.
    folder  TEXT NOT NULL,
    -- A JSON object of bytes by name.
    sizes   TEXT NOT NULL,
    PRIMARY KEY (task, attempt)
);

-- Folders of tasks that were forgotten: somebody who reaches the place is yet to remove them.
CREATE TABLE artifacts_left (
    place  TEXT NOT NULL,
    folder TEXT NOT NULL,
    PRIMARY KEY (place, folder)
);

CREATE FUNCTION artifacts_are_left() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO artifacts_left (place, folder) VALUES (OLD.place, OLD.folder)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER artifacts_are_left AFTER DELETE ON artifacts FOR EACH ROW WHEN (OLD.place <> '')
EXECUTE FUNCTION artifacts_are_left();

CREATE TABLE channel (
    owner         identifier NOT NULL,
    name          identifier NOT NULL CHECK (name NOT IN ('inbox', 'notify')),
    session       identifier,
    kind          TEXT NOT NULL CHECK (kind IN ('command', 'webhook', 'desktop')),
    target        TEXT NOT NULL,
    -- A JSON list of the kinds of signals, NULL for all.
    kinds         TEXT,
    allow_private BOOLEAN NOT NULL DEFAULT false,
    -- The name of the file that holds its key; the key itself is not in the record.
    secret        TEXT,
    -- Why nothing goes through it.
    paused        TEXT,
    PRIMARY KEY (owner, name),
    CHECK ((secret IS NOT NULL) = (kind = 'webhook'))
);

-- What a session wants to be told: a JSON list of kinds of signals. A session that is not here wants all.
CREATE TABLE wish (
    owner   identifier NOT NULL,
    session identifier NOT NULL,
    kinds   TEXT NOT NULL,
    PRIMARY KEY (owner, session)
);

-- Who carries out work of this record, each under its present name as a worker of the engine, which
-- says of those whether they live.
CREATE TABLE node (
    id       identifier PRIMARY KEY,
    worker   BIGINT NOT NULL,
    seen_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- Of its clock before that of the database, in microseconds.
    ahead    BIGINT NOT NULL DEFAULT 0,
    -- What it takes on: the engine's queues that it listens to, and how many tasks at once.
    routes   TEXT[] NOT NULL DEFAULT '{}',
    places   BIGINT NOT NULL DEFAULT 0 CHECK (places >= 0),
    -- It takes on nothing more.
    draining BOOLEAN NOT NULL DEFAULT false,
    kind     TEXT NOT NULL DEFAULT 'worker' CHECK (kind IN ('worker', 'application')),
    machine  TEXT NOT NULL DEFAULT '',
    pid      BIGINT NOT NULL DEFAULT 0,
    -- It is dead when it was not heard of for so long.
    silent_s DOUBLE PRECISION NOT NULL DEFAULT 30 CHECK (silent_s > 0),
    -- JSON lists of names.
    queues   TEXT NOT NULL DEFAULT '[]',
    tools    TEXT NOT NULL DEFAULT '[]',
    agents   TEXT NOT NULL DEFAULT '[]'
);

-- Tools and agents that can be asked for by name, whoever has them at present: a JSON document each.
CREATE TABLE offer (
    kind     TEXT NOT NULL CHECK (kind IN ('tool', 'agent')),
    name     identifier NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);

-- Applications that carry out tasks in themselves: tools and agents.
CREATE TABLE worker (
    id         identifier PRIMARY KEY,
    boot_id    TEXT NOT NULL,
    pid        BIGINT NOT NULL,
    created_at instant NOT NULL,
    -- What a process that takes over its work is started with, where it has left any.
    hand_over  TEXT
);

-- Sessions that have ended: what they would be told is dropped. One that starts something is back.
CREATE TABLE ended_session (
    owner    identifier NOT NULL,
    session  identifier NOT NULL,
    ended_at instant NOT NULL,
    PRIMARY KEY (owner, session)
);

-- However it is started; a schedule that fires is not the session's doing.
CREATE FUNCTION session_is_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ended_session WHERE owner = NEW.owner AND session = NEW.session;
    RETURN NULL;
END
$$;
CREATE TRIGGER session_is_back AFTER INSERT ON task FOR EACH ROW WHEN (NEW.schedule IS NULL)
EXECUTE FUNCTION session_is_back();

-- Tasks that start by the clock.
CREATE TABLE schedule (
    seq           BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id            identifier NOT NULL UNIQUE,
    owner         identifier NOT NULL,
    session       identifier NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('shell', 'python', 'tool', 'agent')),
    title         TEXT NOT NULL,
    -- Of the tasks that it starts.
    spec          TEXT NOT NULL,
    -- One of the two says when.
    cron          TEXT,
    at            instant,
    zone          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('active', 'paused', 'done', 'canceled')),
    missed        TEXT NOT NULL CHECK (missed IN ('skip', 'once', 'all')),
    overlap       TEXT NOT NULL CHECK (overlap IN ('skip', 'queue', 'parallel')),
    jitter_s      DOUBLE PRECISION NOT NULL CHECK (jitter_s >= 0),
    max_runtime_s DOUBLE PRECISION,
    -- So many active tasks of its kind its session may have.
    task_limit    BIGINT NOT NULL,
    hand_over     TEXT,
    created_at    instant NOT NULL,
    ended_at      instant,
    -- The nominal time of the next firing, and when that is made.
    next_at       instant,
    due_at        instant,
    -- The nominal time up to which everything is dealt with.
    last_at       instant,
    fired         BIGINT NOT NULL DEFAULT 0,
    last_task     identifier,
    detail        TEXT,
    -- Of the tasks that it starts.
    priority      BIGINT NOT NULL DEFAULT 0 CHECK (priority BETWEEN -10 AND 10),
    CHECK ((cron IS NULL) <> (at IS NULL)),
    CHECK ((next_at IS NOT NULL) = (state = 'active')),
    CHECK ((due_at IS NOT NULL) = (state = 'active')),
    CHECK (due_at >= next_at),
    CHECK (next_at > last_at),
    CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'canceled')))
);

CREATE INDEX schedule_by_session ON schedule (owner, session, seq);
CREATE INDEX schedule_due ON schedule (due_at) WHERE state = 'active';

-- The key is what makes "a firing never happens twice" a fact of the database.
CREATE TABLE firing (
    schedule   BIGINT NOT NULL REFERENCES schedule (seq) ON DELETE CASCADE,
    nominal_at instant NOT NULL,
    at         instant NOT NULL,
    task       identifier,
    reason     TEXT,
    PRIMARY KEY (schedule, nominal_at),
    CHECK (task IS NOT NULL OR reason IS NOT NULL)
);

-- Who may call the HTTP API.
CREATE TABLE token (
    seq          BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id           identifier NOT NULL UNIQUE,
    owner        identifier NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'user', 'viewer')),
    -- The only session that its holder sees; NULL for all of the owner.
    session      identifier,
    label        TEXT NOT NULL,
    -- The token that it was traded for, and with which it ends.
    parent       identifier,
    -- SHA-256 of the whole token, in hexadecimal.
    digest       TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    created_at   instant NOT NULL,
    expires_at   instant,
    last_used_at instant,
    revoked_at   instant
);
