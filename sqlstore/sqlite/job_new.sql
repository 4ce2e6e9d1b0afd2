-- ?1 kind, ?2 who, ?3 reason, ?4 filter for people, ?5 events each second. Returns the id.
INSERT INTO {jobs} (kind, who, reason, filter, rate)
VALUES (?1, ?2, ?3, ?4, ?5)
RETURNING id;
