-- For this transaction only: a relay that halts in the middle of it must not keep the job from the others.
SELECT set_config('idle_in_transaction_session_timeout', '10s', true);

-- $1 job. Locks it, if it runs and is due and nobody else has locked it.
SELECT id, kind, who, reason, rate, total, looked FROM {jobs} WHERE id = $1 AND state = 'RUNNING' AND due_at <= now() FOR UPDATE SKIP LOCKED;
