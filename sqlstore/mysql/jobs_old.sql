-- :1 for how many seconds a job is kept after its end. Steps of other jobs are not waited for.
SELECT j.id
FROM {jobs} j
WHERE j.finished_at < utc_timestamp(6) - INTERVAL :1 SECOND AND NOT EXISTS (SELECT 1 FROM {job_events} e WHERE e.job = j.id)
FOR UPDATE /*!80019 OF j */ SKIP LOCKED;

DELETE j
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = picked.id;
