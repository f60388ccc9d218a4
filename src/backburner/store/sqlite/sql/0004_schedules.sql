-- Tasks that start by the clock.

CREATE TABLE schedule (
    seq       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE
) STRICT;
