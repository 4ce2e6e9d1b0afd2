-- The sink at which an event failed, so that dead letters can be told apart by it.
ALTER TABLE {attempts} ADD COLUMN sink text;

-- Redrives and discards of many dead letters, which relays carry out part by part.
CREATE TABLE {jobs} (
  id          integer PRIMARY KEY AUTOINCREMENT,
  kind        text    NOT NULL CHECK (kind IN ('redrive', 'discard')),
  state       text    NOT NULL DEFAULT 'RUNNING' CHECK (state IN ('RUNNING', 'PAUSED', 'CANCELLED', 'DONE')),
  who         text    NOT NULL,
  reason      text    NOT NULL,
  filter      text    NOT NULL,
  rate        integer NOT NULL CHECK (rate >= 0),
  total       integer NOT NULL DEFAULT 0,
  looked      integer NOT NULL DEFAULT 0,
  changed     integer NOT NULL DEFAULT 0,
  created_at  text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  due_at      text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  steered     text    NOT NULL DEFAULT '',
  finished_at text,
  CHECK ((finished_at IS NOT NULL) = (state IN ('CANCELLED', 'DONE')))
);

CREATE INDEX {index_jobs_state} ON {jobs} (state, due_at);

-- The set of each job: n counts its events in outbox order, from 1.
CREATE TABLE {job_events} (
  job   integer NOT NULL,
  n     integer NOT NULL,
  event integer NOT NULL,
  PRIMARY KEY (job, n)
) WITHOUT ROWID;

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT version + 1, outbox_table, shards, payload FROM {schema} ORDER BY version DESC LIMIT 1;
