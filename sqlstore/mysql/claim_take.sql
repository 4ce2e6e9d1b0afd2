-- :1 candidates as JSON: id, retry_count, seen (the token of the claim that ran out, if any), token; :2 lease in seconds,
-- :3 member id, :4 what is kept about a claim that ran out. Takes those that still are as they were seen, which
-- claim_candidates.sql has locked, and returns their ids.
UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (
  id bigint PATH '$.id', retry_count int PATH '$.retry_count', seen char(36) CHARACTER SET utf8mb4 PATH '$.seen', token char(36) CHARACTER SET utf8mb4 PATH '$.token'
)) candidate
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = candidate.id AND e.retry_count = candidate.retry_count
SET e.status = 'PROCESSING', e.claim_token = candidate.token,
    e.processing_until = utc_timestamp(6) + INTERVAL round(:2 * 1000000) MICROSECOND
WHERE candidate.seen IS NULL AND e.status = 'PENDING' AND e.next_attempt_at <= utc_timestamp(6)
  OR e.status = 'PROCESSING' AND e.claim_token = candidate.seen AND e.processing_until <= utc_timestamp(6);

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT e.id, 'retry', :4, :3
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', seen char(36) CHARACTER SET utf8mb4 PATH '$.seen', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) candidate
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = candidate.id
WHERE candidate.seen IS NOT NULL AND e.claim_token = candidate.token;

SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) candidate
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = candidate.id
WHERE e.claim_token = candidate.token;
