-- Tasks, their events and their signals. What must never be true is refused here, whatever the
-- program above believes.

CREATE TABLE task (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL,
    session       TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('shell', 'python', 'tool', 'agent')),
    title         TEXT NOT NULL,
    spec          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN
                      ('queued', 'running', 'input_required', 'succeeded', 'failed', 'canceled')),
    attempt       INTEGER NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    created_at    INTEGER NOT NULL,
    started_at    INTEGER,
    finished_at   INTEGER,
    max_runtime_s REAL,
    detail        TEXT,
    progress      TEXT,
    ready_at      INTEGER,
    parked_at     INTEGER,
    exit_code     INTEGER,
    error_kind    TEXT CHECK (error_kind IN
                      ('error', 'exit', 'timeout', 'orphaned', 'killed', 'spawn')),
    error_message TEXT,
    summary       TEXT,
    result        TEXT,
    boot_id       TEXT,
    started_boot  INTEGER,
    pid           INTEGER,
    cgroup        TEXT,
    stop_at       INTEGER,
    stop_grace_s  REAL,
    ended_for     TEXT CHECK (ended_for IN ('stop', 'timeout')),
    output_bytes  INTEGER NOT NULL DEFAULT 0,
    dropped_bytes INTEGER NOT NULL DEFAULT 0,
    leftovers     INTEGER NOT NULL DEFAULT 0 CHECK (leftovers >= 0),
    parent        TEXT,
    schedule      TEXT,
    hand_over     TEXT,
    events        INTEGER NOT NULL DEFAULT 0,
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'failed', 'canceled'))),
    CHECK ((error_kind IS NOT NULL) = (state = 'failed')),
    CHECK ((error_kind IS NULL) = (error_message IS NULL)),
    CHECK (exit_code IS NULL OR state = 'succeeded' OR error_kind IS 'exit'),
    CHECK (state <> 'running' OR boot_id IS NOT NULL),
    CHECK (leftovers = 0 OR finished_at IS NOT NULL)
) STRICT;

CREATE INDEX task_by_session ON task (owner, session, seq);
CREATE INDEX task_by_owner ON task (owner, seq);
CREATE INDEX task_by_end ON task (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX task_active ON task (owner, session, kind)
    WHERE state IN ('queued', 'running', 'input_required');
CREATE INDEX task_lingering ON task (seq) WHERE leftovers > 0;
CREATE INDEX task_queued ON task (kind, seq) WHERE state = 'queued';
CREATE INDEX task_stopping ON task (kind, seq)
    WHERE stop_at IS NOT NULL AND (finished_at IS NULL OR leftovers > 0);

-- AUTOINCREMENT: a stream resumes from seq, so a number must never come twice, also after a prune.
CREATE TABLE event (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    task   INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    data   TEXT NOT NULL,
    UNIQUE (task, number)
) STRICT;

-- The unique key is what makes "told once" a fact of the database.
CREATE TABLE signal (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    key          TEXT NOT NULL UNIQUE,
    task         INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    owner        TEXT NOT NULL,
    session      TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN
                     ('completed', 'failed', 'canceled', 'input_required', 'ready', 'match', 'silent')),
    text         TEXT NOT NULL,
    data         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN
                     ('pending', 'claimed', 'delivered', 'failed', 'dropped')),
    reason       TEXT,
    channel      TEXT NOT NULL,
    tries        INTEGER NOT NULL DEFAULT 0,
    retry_at     INTEGER,
    consumer     TEXT,
    lease_boot   TEXT,
    lease_until  INTEGER,
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER,
    CHECK ((delivered_at IS NOT NULL) = (state = 'delivered')),
    CHECK ((consumer IS NOT NULL) = (state = 'claimed')),
    CHECK (state <> 'dropped' OR reason IS NOT NULL)
) STRICT;

CREATE INDEX signal_by_task ON signal (task);
CREATE INDEX signal_by_session ON signal (owner, session, seq);
CREATE INDEX signal_open ON signal (owner, session, seq)
    WHERE state IN ('pending', 'claimed', 'failed');
CREATE INDEX signal_claimed ON signal (consumer) WHERE state = 'claimed';
