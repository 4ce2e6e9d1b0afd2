-- $1 shards, $2 the ids to look from, as JSON. Returns for each shard the lowest id that may be sent at once, or the
-- highest id of all when there is none, and the horizons of the statement's snapshot. See floors.go.
SELECT s.shard,
       coalesce((
         SELECT e.id
         FROM {events} e
         WHERE e.shard = s.shard AND e.id >= s.floor AND e.status = 'PENDING' AND e.next_attempt_at <= e.created_at
         ORDER BY e.id
         LIMIT 1
       ), (SELECT max(id) FROM {events}), 0),
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint
FROM unnest(translate($1::text, '[]', '{}')::smallint[], translate($2::text, '[]', '{}')::bigint[]) AS s(shard, floor);
