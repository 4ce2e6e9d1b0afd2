-- :1 job. Locks it, if it runs and is due and nobody else has locked it.
SELECT id, kind, who, reason, rate, total, looked FROM {jobs} WHERE id = :1 AND state = 'RUNNING' AND due_at <= utc_timestamp(6) FOR UPDATE SKIP LOCKED;
