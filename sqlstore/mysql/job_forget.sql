-- :1 job, :2 how far its set is to be deleted.
DELETE FROM {job_events} WHERE job = :1 AND n <= :2;
