-- $1 keys, $2 bytes of a payload, $3 events.
INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
SELECT 'figure', 'k-' || n % $1::int, 'Measured', (rpad('{"n":"' || n, $2::int - 2, 'x') || '"}')::json
FROM generate_series(1, $3::int) n;
