-- Who has last taken the name of a node that may have been copied: of two copies that start at the same
-- moment, neither of which has been heard of yet, one is the first here.
CREATE TABLE node_name (
    id     identifier PRIMARY KEY,
    holder TEXT NOT NULL,
    at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
