-- ?1 event behind which the chunk begins, ?2 its last event. Deletes holds whose event is gone or no longer DEAD.
DELETE FROM {holds}
WHERE event > ?1 AND event <= ?2 AND (SELECT e.status FROM {events} e WHERE e.id = {holds}.event) IS NOT 'DEAD';
