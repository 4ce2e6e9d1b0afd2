-- $1 job, $2 how far it has come, $3 how many events have changed in this step, $4 in how many seconds the next one is due.
UPDATE {jobs}
SET looked = $2, changed = changed + $3, due_at = clock_timestamp() + $4::float8 * interval '1 second',
    state = CASE WHEN total <= $2 THEN 'DONE' ELSE 'RUNNING' END, finished_at = CASE WHEN total <= $2 THEN clock_timestamp() END
WHERE id = $1;
