-- $1 events, $2 keys, $3 bytes of a payload.
INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
SELECT 'figure', 'k-' || n % $2::int, 'Measured', (rpad('{"n":"' || n, $3::int - 2, 'x') || '"}')::json
FROM generate_series(1, $1::int) n;
