-- $1 events, $2 keys, $3 bytes of a payload.
INSERT INTO bare (key, payload)
SELECT 'k-' || n % $2::int, (rpad('{"n":"' || n, $3::int - 2, 'x') || '"}')::json
FROM generate_series(1, $1::int) n;
