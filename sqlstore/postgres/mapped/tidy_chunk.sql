-- For this transaction only; see read.sql.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- $1 event to walk on from, $2 limit. Returns how many events have side rows there, up to the limit, and the last of them.
SELECT count(*), coalesce(max(event), '')
FROM (
  SELECT event
  FROM (
    (SELECT event FROM {failures} WHERE event > $1 ORDER BY event LIMIT $2)
    UNION
    (SELECT event FROM {holds} WHERE event > $1 ORDER BY event LIMIT $2)
    UNION
    (SELECT DISTINCT event FROM {attempts} WHERE event > $1 ORDER BY event LIMIT $2)
  ) side
  ORDER BY event
  LIMIT $2
) chunk;
