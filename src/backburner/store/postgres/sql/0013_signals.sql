-- A signal is about a task of its owner: its key is made of that task's id, and would take the place of
-- what the task's own owner is to be told.
ALTER POLICY of_owner ON signal
WITH CHECK (owner = present_owner() AND EXISTS (SELECT 1 FROM task WHERE task.seq = signal.task));
