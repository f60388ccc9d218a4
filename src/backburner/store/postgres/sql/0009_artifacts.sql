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
