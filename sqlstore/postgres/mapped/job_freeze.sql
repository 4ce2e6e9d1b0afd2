-- $1 job, $2 limit; the filter takes the rest. It locks no event.
INSERT INTO {job_events} (job, n, event)
SELECT $1::bigint, row_number() OVER (ORDER BY {row_order}), e.ref
FROM (SELECT e.id, e.ord, e.ref FROM {events} e WHERE {state_dead} AND {filter} ORDER BY {row_order} LIMIT $2) e;
