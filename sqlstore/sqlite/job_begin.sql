-- ?1 job, whose set is frozen.
UPDATE {jobs}
SET total = frozen.events, state = CASE frozen.events WHEN 0 THEN 'DONE' ELSE 'RUNNING' END,
    finished_at = CASE frozen.events WHEN 0 THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END
FROM (SELECT coalesce(max(n), 0) AS events FROM {job_events} WHERE job = ?1) frozen
WHERE id = ?1;
