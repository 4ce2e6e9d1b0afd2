-- Returns the shards in which something may be sent.
SELECT DISTINCT ready_shard FROM {events} FORCE INDEX ({index_ready}) WHERE ready_shard IS NOT NULL
UNION
SELECT waiting_shard FROM {events} FORCE INDEX ({index_waiting}) WHERE waiting_shard IS NOT NULL
GROUP BY waiting_shard
HAVING min(next_attempt_at) <= utc_timestamp(6);
