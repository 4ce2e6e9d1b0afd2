-- :1 job, which is locked, :2 state, :3 who did it and why.
UPDATE {jobs}
SET state = :2, steered = :3, finished_at = CASE WHEN :2 = 'CANCELLED' THEN utc_timestamp(6) END
WHERE id = :1 AND state IN ('RUNNING', 'PAUSED');
