-- ?1 limit; the filter takes the rest. The newest come first.
SELECT j.id, j.kind, j.state, j.who, j.reason, j.filter, j.rate, j.total, j.looked, j.changed,
       replace(j.created_at, ' ', 'T') || 'Z', j.steered,
       replace(j.finished_at, ' ', 'T') || 'Z'
FROM {jobs} j
WHERE {filter}
ORDER BY j.id DESC
LIMIT ?1;
