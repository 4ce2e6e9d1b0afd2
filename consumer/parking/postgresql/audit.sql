-- Parameters: 1 who, 2 reason, 3 event id, 4 id of the message. Its key is locked; no row: it is not parked. The line has the time at which the
-- message was parked where that of a forgotten receipt stands otherwise.
INSERT INTO {audit} (who, action, reason, consumer, dedup_key, applied_at)
SELECT $1::text, 'give up', $2::text, consumer, $3::text, parked_at
FROM {parked}
WHERE id = $4
