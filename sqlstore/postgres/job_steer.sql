-- $1 job, which is locked, $2 state, $3 who did it and why.
UPDATE {jobs}
SET state = $2::text, steered = $3, finished_at = CASE WHEN $2::text = 'CANCELLED' THEN now() END
WHERE id = $1 AND state IN ('RUNNING', 'PAUSED');
