-- ?1 job, ?2 how far it has come, ?3 how many events have changed in this step, ?4 in how many seconds the next one is due.
UPDATE {jobs}
SET looked = ?2, changed = changed + ?3, due_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?4)),
    state = CASE WHEN total <= ?2 THEN 'DONE' ELSE 'RUNNING' END, finished_at = CASE WHEN total <= ?2 THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END
WHERE id = ?1;
