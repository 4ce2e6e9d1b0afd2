-- ?1 outbox id.
SELECT replace(at, ' ', 'T') || 'Z', outcome, coalesce(error, ''), coalesce(actor, '')
FROM {attempts}
WHERE event = ?1
ORDER BY id;
