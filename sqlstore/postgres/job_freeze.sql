-- $1 job, $2 limit; the filter takes the rest. It locks no event.
INSERT INTO {job_events} (job, n, event)
SELECT $1::bigint, row_number() OVER (ORDER BY e.id), e.id
FROM (SELECT e.id FROM {events} e WHERE e.status = 'DEAD' AND {filter} ORDER BY e.id LIMIT $2) e;
