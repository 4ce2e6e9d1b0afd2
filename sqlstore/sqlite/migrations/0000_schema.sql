CREATE TABLE IF NOT EXISTS {schema} (
  version      integer PRIMARY KEY,
  applied_at   text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  outbox_table text    NOT NULL,
  shards       integer NOT NULL CHECK (shards BETWEEN 1 AND 32767),
  payload      text    NOT NULL CHECK (payload IN ('json', 'binary'))
);
