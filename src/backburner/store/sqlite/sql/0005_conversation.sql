-- What goes to and fro between a task and its session.

-- A JSON schema that the answer has to fit.
ALTER TABLE question ADD COLUMN schema TEXT;
-- Asked about the task and not by it: whether another session of the owner may stop it.
ALTER TABLE question ADD COLUMN approval INTEGER NOT NULL DEFAULT 0 CHECK (approval IN (0, 1));
-- The session that wants to, and the grace that the task then gets.
ALTER TABLE question ADD COLUMN asker TEXT CHECK ((asker IS NOT NULL) = (approval = 1));
ALTER TABLE question ADD COLUMN grace_s REAL CHECK ((grace_s IS NOT NULL) = (approval = 1));

-- What somebody tells a task while it runs.
CREATE TABLE message (
    seq     INTEGER PRIMARY KEY,
    task    INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    number  INTEGER NOT NULL CHECK (number >= 1),
    text    TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    -- The attempt that it has reached.
    taken   INTEGER CHECK (taken >= 1),
    UNIQUE (task, number)
) STRICT;

CREATE INDEX message_waiting ON message (task, number) WHERE taken IS NULL;

-- Sessions that have ended: what they would be told is dropped. One that starts something is back.
CREATE TABLE ended_session (
    owner    TEXT NOT NULL,
    session  TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    PRIMARY KEY (owner, session)
) STRICT, WITHOUT ROWID;

-- However it is started; a schedule that fires is not the session's doing.
CREATE TRIGGER session_is_back AFTER INSERT ON task WHEN NEW.schedule IS NULL
BEGIN
    DELETE FROM ended_session WHERE owner = NEW.owner AND session = NEW.session;
END;

-- One kind more: what a task tells its session while it goes on.
CREATE TABLE new_signal (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    key          TEXT NOT NULL UNIQUE,
    task         INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    owner        TEXT NOT NULL,
    session      TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN
                     ('completed', 'failed', 'canceled', 'input_required', 'ready', 'match', 'silent',
                      'message')),
    text         TEXT NOT NULL,
    data         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN
                     ('pending', 'claimed', 'delivered', 'failed', 'dropped')),
    reason       TEXT,
    channel      TEXT NOT NULL,
    tries        INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    retry_at     INTEGER,
    consumer     TEXT,
    -- Of a claimed one until when it is held; of a pending or failed one when it may be claimed.
    lease_boot   TEXT,
    lease_until  INTEGER,
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER,
    CHECK ((delivered_at IS NOT NULL) = (state = 'delivered')),
    CHECK ((consumer IS NOT NULL) = (state = 'claimed')),
    CHECK (state <> 'dropped' OR reason IS NOT NULL)
) STRICT;

INSERT INTO new_signal (seq, key, task, owner, session, kind, text, data, state, reason, channel, tries,
                        retry_at, consumer, lease_boot, lease_until, created_at, delivered_at)
SELECT seq, key, task, owner, session, kind, text, data, state, reason, channel, tries, retry_at,
       consumer, lease_boot, lease_until, created_at, delivered_at FROM signal;
-- A number never comes twice, also where the last ones are forgotten.
DELETE FROM sqlite_sequence WHERE name = 'new_signal';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_signal', seq FROM sqlite_sequence WHERE name = 'signal';
DROP TABLE signal;
ALTER TABLE new_signal RENAME TO signal;

CREATE INDEX signal_by_task ON signal (task);
CREATE INDEX signal_by_session ON signal (owner, session, seq);
CREATE INDEX signal_open ON signal (owner, session, seq)
    WHERE state IN ('pending', 'claimed', 'failed');
CREATE INDEX signal_claimed ON signal (consumer) WHERE state = 'claimed';
CREATE INDEX signal_to_push ON signal (channel, seq)
    WHERE channel <> 'inbox' AND state IN ('pending', 'claimed', 'failed');
