-- $1 outbox id.
SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), outcome, coalesce(error, ''), coalesce(actor, '')
FROM {attempts}
WHERE event = $1::text
ORDER BY id;
