-- $1 member id, $2 relay name, $3 whether the member is new. Returns name and claim of a relay at work on this table
-- with which the member cannot share the work: any for a new member, one that was there first for an old one, so that two
-- that met give way in one direction.
SELECT other.relay_name, other.claim
FROM {relays} other, {relays} mine
WHERE mine.id = $1
  AND (other.relay_name <> $2 OR other.claim <> mine.claim)
  AND other.heartbeat_at + other.lease_seconds * interval '1 second' > now()
  AND ($3 OR (other.started_at, other.id) < (mine.started_at, mine.id))
ORDER BY other.started_at
LIMIT 1;
