-- Returns a job that has ended and still has a set, and how far its set goes.
SELECT id, total
FROM {jobs} j
WHERE state IN ('CANCELLED', 'DONE') AND EXISTS (SELECT 1 FROM {job_events} e WHERE e.job = j.id)
ORDER BY id
LIMIT 1;
