-- ?1 job, ?2 how far it has come, ?3 how far it is to come. Returns the events between, in order.
SELECT event FROM {job_events} WHERE job = ?1 AND n > ?2 AND n <= ?3 ORDER BY n;
