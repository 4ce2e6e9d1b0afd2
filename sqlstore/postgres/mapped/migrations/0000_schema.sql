-- Only one at a time creates or upgrades the tables.
SELECT pg_advisory_xact_lock(hashtextextended('postrider init {schema}', 0));

CREATE TABLE IF NOT EXISTS {schema} (
  version      integer     PRIMARY KEY,
  applied_at   timestamptz NOT NULL DEFAULT now(),
  outbox_table text        NOT NULL,
  shards       integer     NOT NULL CHECK (shards BETWEEN 1 AND 32767),
  payload      text        NOT NULL CHECK (payload IN ('json', 'binary'))
);
