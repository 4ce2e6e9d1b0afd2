-- :1 job, :2 limit; the filter takes the rest. It locks no event.
INSERT INTO {job_events} (job, n, event)
SELECT :1, row_number() OVER (ORDER BY e.id), e.id
FROM (SELECT e.id FROM {events} e FORCE INDEX ({index_given_up}) WHERE e.given_up = 'DEAD' AND {filter} ORDER BY e.id LIMIT :2) e;
