-- Who may call the HTTP API, and what the dashboard asks the record.

CREATE TABLE token (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    owner        TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'user', 'viewer')),
    -- The only session that its holder sees; NULL for all of the owner.
    session      TEXT,
    label        TEXT NOT NULL,
    -- The token that it was traded for, and with which it ends.
    parent       TEXT,
    -- SHA-256 of the whole token, in hexadecimal.
    digest       TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;

-- What a task has started.
CREATE INDEX task_by_parent ON task (parent, seq) WHERE parent IS NOT NULL;
