-- Returns the jobs that run, and in how many seconds each is due.
SELECT id, extract(epoch FROM due_at - now())::float8 FROM {jobs} WHERE state = 'RUNNING' ORDER BY due_at, id;
