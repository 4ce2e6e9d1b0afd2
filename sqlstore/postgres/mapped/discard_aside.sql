-- Like discard.sql, for tables in which nothing of it can be written.
WITH picked AS (
  SELECT e.id, e.ref
  FROM {events} e
  WHERE e.status = 'DEAD' AND ($1::text = '' OR e.id > nullif($1::text, '')::{id_type}) AND {filter}
  ORDER BY e.id
  LIMIT $2
), changed AS (
  UPDATE {failures} f SET state = 'DISCARDED' FROM picked WHERE f.event = picked.ref AND f.state = 'DEAD' RETURNING f.event AS ref
), released AS (
  DELETE FROM {holds} h USING changed WHERE h.event = changed.ref
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor) SELECT ref, $3, $4, $5 FROM changed
)
SELECT picked.ref FROM picked JOIN changed USING (ref) ORDER BY picked.id;
