-- Returns the jobs that run, and in how many seconds each is due.
SELECT id, timestampdiff(MICROSECOND, utc_timestamp(6), due_at) / 1000000 FROM {jobs} WHERE state = 'RUNNING' ORDER BY due_at, id;
