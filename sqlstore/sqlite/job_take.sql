-- ?1 job. Finds it, if it runs and is due; the transaction has locked it.
SELECT id, kind, who, reason, rate, total, looked FROM {jobs} WHERE id = ?1 AND state = 'RUNNING' AND due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now');
