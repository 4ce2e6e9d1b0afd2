-- :1 shards as JSON. Returns those in which something may be sent.
SELECT list.shard
FROM JSON_TABLE(:1, '$[*]' COLUMNS (shard smallint PATH '$')) list
WHERE (SELECT r.ready_shard FROM {events} r FORCE INDEX ({index_ready}) WHERE r.ready_shard = list.shard LIMIT 1) IS NOT NULL
   OR (
     SELECT w.next_attempt_at
     FROM {events} w FORCE INDEX ({index_waiting})
     WHERE w.waiting_shard = list.shard
     ORDER BY w.waiting_shard, w.next_attempt_at, w.id
     LIMIT 1
   ) <= utc_timestamp(6);
