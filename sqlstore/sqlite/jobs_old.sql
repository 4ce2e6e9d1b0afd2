-- ?1 for how many seconds a job is kept after its end.
DELETE FROM {jobs}
WHERE finished_at < strftime('%Y-%m-%d %H:%M:%f', 'now', printf('-%.3f seconds', ?1)) AND NOT EXISTS (SELECT 1 FROM {job_events} e WHERE e.job = {jobs}.id);
