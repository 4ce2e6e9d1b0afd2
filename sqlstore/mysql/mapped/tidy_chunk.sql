-- :1 event to walk on from, :2 limit. Returns how many events have side rows there, up to the limit, and the last of them.
SELECT count(*), coalesce(max(event), '')
FROM (
  SELECT event
  FROM (
    (SELECT event FROM {failures} FORCE INDEX (PRIMARY) WHERE event > :1 ORDER BY event LIMIT :2)
    UNION
    (SELECT event FROM {holds} FORCE INDEX (PRIMARY) WHERE event > :1 ORDER BY event LIMIT :2)
    UNION
    (SELECT DISTINCT event FROM {attempts} FORCE INDEX ({index_attempts_event}) WHERE event > :1 ORDER BY event LIMIT :2)
  ) side
  ORDER BY event
  LIMIT :2
) chunk;
