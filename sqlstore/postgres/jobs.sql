-- $1 limit; the filter takes the rest. The newest come first.
SELECT j.id, j.kind, j.state, j.who, j.reason, j.filter, j.rate, j.total, j.looked, j.changed,
       to_char(j.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), j.steered,
       to_char(j.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
FROM {jobs} j
WHERE {filter}
ORDER BY j.id DESC
LIMIT $1;
