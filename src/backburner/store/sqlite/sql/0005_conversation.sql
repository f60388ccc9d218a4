-- What goes to and fro between a task and its session.

-- A JSON schema that the answer has to fit.
ALTER TABLE question ADD COLUMN schema TEXT;
-- Asked about the task and not by it: whether another session of the owner may stop it.
ALTER TABLE question ADD COLUMN approval INTEGER NOT NULL DEFAULT 0 CHECK (approval IN (0, 1));
