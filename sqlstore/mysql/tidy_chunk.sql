-- :1 event to walk on from, :2 limit. Returns how many events have holds there, up to the limit, and the last of them.
SELECT count(*), coalesce(max(event), 0)
FROM (SELECT event FROM {holds} FORCE INDEX (PRIMARY) WHERE event > :1 ORDER BY event LIMIT :2) chunk;
