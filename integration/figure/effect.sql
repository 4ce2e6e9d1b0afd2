-- $1 event ids, $2 keys, $3 payloads.
INSERT INTO effects (event_id, event_key, payload) SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[])
