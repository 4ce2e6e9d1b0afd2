CREATE TABLE IF NOT EXISTS {schema} (
  version      int          NOT NULL PRIMARY KEY,
  applied_at   datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  outbox_table varchar(255) NOT NULL,
  shards       int          NOT NULL CHECK (shards BETWEEN 1 AND 32767),
  payload      varchar(10)  NOT NULL CHECK (payload IN ('json', 'binary'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};
