-- Returns the jobs that run, and in how many seconds each is due.
SELECT id, (julianday(due_at) - julianday('now')) * 86400 FROM {jobs} WHERE state = 'RUNNING' ORDER BY due_at, id;
