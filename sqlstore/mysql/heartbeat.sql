-- :1 member id, :2 relay name, :3 host, :4 version, :5 lease in seconds, :6 sinks as JSON, :7 claim.
-- Returns whether the member is new.
INSERT INTO {relays} (id, relay_name, host, version, lease_seconds, sinks, claim)
VALUES (:1, :2, :3, :4, :5, :6, :7)
ON DUPLICATE KEY UPDATE heartbeat_at = utc_timestamp(6), lease_seconds = :5, sinks = :6;

SELECT started_at = heartbeat_at FROM {relays} WHERE id = :1;
