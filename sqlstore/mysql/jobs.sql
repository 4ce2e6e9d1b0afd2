-- :1 limit; the filter takes the rest. The newest come first.
SELECT j.id, j.kind, j.state, j.who, j.reason, j.filter, j.rate, j.total, j.looked, j.changed,
       date_format(j.created_at, '%Y-%m-%dT%H:%i:%s.%fZ'), coalesce(j.steered, ''),
       date_format(j.finished_at, '%Y-%m-%dT%H:%i:%s.%fZ')
FROM {jobs} j
WHERE {filter}
ORDER BY j.id DESC
LIMIT :1;
