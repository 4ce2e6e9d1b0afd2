-- $1 member id, $2 relay name, $3 host, $4 version, $5 lease in seconds, $6 sinks as JSON, $7 claim.
-- Returns whether the member is new.
INSERT INTO {relays} (id, relay_name, host, version, lease_seconds, sinks, claim)
VALUES ($1, $2, $3, $4, $5::float8, $6::text::json, $7)
ON CONFLICT (id) DO UPDATE
SET heartbeat_at = now(), lease_seconds = excluded.lease_seconds, sinks = excluded.sinks
RETURNING started_at = heartbeat_at;
