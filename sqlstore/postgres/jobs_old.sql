-- $1 for how many seconds a job is kept after its end.
DELETE FROM {jobs}
WHERE finished_at < now() - $1::float8 * interval '1 second' AND NOT EXISTS (SELECT 1 FROM {job_events} e WHERE e.job = {jobs}.id);
