-- The sink at which an event failed, so that dead letters can be told apart by it.
ALTER TABLE {attempts} ADD COLUMN sink text;

-- Redrives and discards of many dead letters, which relays carry out part by part.
CREATE TABLE IF NOT EXISTS {jobs} (
  id          bigint      NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind        varchar(10) NOT NULL CHECK (kind IN ('redrive', 'discard')),
  state       varchar(10) NOT NULL DEFAULT 'RUNNING' CHECK (state IN ('RUNNING', 'PAUSED', 'CANCELLED', 'DONE')),
  who         text        NOT NULL,
  reason      text        NOT NULL,
  filter      text        NOT NULL,
  rate        bigint      NOT NULL CHECK (rate >= 0),
  total       bigint      NOT NULL DEFAULT 0,
  looked      bigint      NOT NULL DEFAULT 0,
  changed     bigint      NOT NULL DEFAULT 0,
  created_at  datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
  due_at      datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
  steered     text,
  finished_at datetime(6),
  CHECK ((finished_at IS NOT NULL) = (state IN ('CANCELLED', 'DONE'))),
  INDEX {index_jobs_state} (state, due_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- The set of each job: n counts its events in outbox order, from 1.
CREATE TABLE IF NOT EXISTS {job_events} (
  job   bigint NOT NULL,
  n     bigint NOT NULL,
  event bigint NOT NULL,
  PRIMARY KEY (job, n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- Tables of these names that are not ours are found here.
SELECT {jobs}.due_at, {job_events}.event FROM {jobs}, {job_events} LIMIT 0;

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT version + 1, outbox_table, shards, payload FROM {schema} ORDER BY version DESC LIMIT 1;
