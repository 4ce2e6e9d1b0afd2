-- :1 job, whose set is frozen.
UPDATE {jobs} j
JOIN (SELECT coalesce(max(n), 0) AS events FROM {job_events} WHERE job = :1) frozen
SET j.total = frozen.events, j.state = CASE frozen.events WHEN 0 THEN 'DONE' ELSE 'RUNNING' END,
    j.finished_at = CASE frozen.events WHEN 0 THEN utc_timestamp(6) END
WHERE j.id = :1;
