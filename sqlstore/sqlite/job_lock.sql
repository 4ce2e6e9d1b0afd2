-- ?1 job. The transaction has locked it.
SELECT id FROM {jobs} WHERE id = ?1;
