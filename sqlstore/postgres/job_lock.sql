-- $1 job.
SELECT id FROM {jobs} WHERE id = $1 FOR UPDATE;
