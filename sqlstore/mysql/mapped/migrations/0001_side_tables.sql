-- Every statement can run again, because none can be undone: what a stopped Init left is completed by the next one.
-- Times are in UTC, whatever the time zone of a session. Texts compare by their exact characters.

-- What failed. A row holds while theirs is in the state their_state.
CREATE TABLE IF NOT EXISTS {failures} (
  event           varchar(767) NOT NULL PRIMARY KEY,
  event_key       varchar(767) NOT NULL,
  state           varchar(10)  NOT NULL CHECK (state IN ('PENDING', 'DEAD', 'DISCARDED')),
  their_state     varchar(10)  NOT NULL,
  retry_count     int          NOT NULL CHECK (retry_count >= 0),
  next_attempt_at datetime(6)  NOT NULL,
  last_error      text         NOT NULL,

  -- The failed events that the later ones of their key wait for.
  blocking_key    varchar(767) GENERATED ALWAYS AS (CASE WHEN state = 'PENDING' THEN event_key END) STORED {invisible},
  INDEX {index_failures_blocking} (blocking_key),
  INDEX {index_failures_state} (state)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

CREATE TABLE IF NOT EXISTS {shards} (
  relay_name  varchar(255) NOT NULL,
  shard       smallint     NOT NULL,
  owner       varchar(255),
  epoch       bigint       NOT NULL DEFAULT 0,
  lease_until datetime(6),
  PRIMARY KEY (relay_name, shard),
  CHECK ((owner IS NULL) = (lease_until IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

CREATE TABLE IF NOT EXISTS {relays} (
  id            varchar(255) NOT NULL PRIMARY KEY,
  relay_name    varchar(255) NOT NULL,
  host          varchar(255) NOT NULL,
  version       varchar(255) NOT NULL,
  started_at    datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  heartbeat_at  datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  lease_seconds double       NOT NULL,
  sinks         longtext     NOT NULL CHECK (json_valid(sinks)),
  claim         varchar(10)  NOT NULL DEFAULT 'shard' CHECK (claim IN ('shard', 'row'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- What failed, and what operators did, for each event. at and id give the order.
CREATE TABLE IF NOT EXISTS {attempts} (
  id      bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event   varchar(767) NOT NULL,
  at      datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  outcome varchar(10)  NOT NULL CHECK (outcome IN ('retry', 'dead', 'redriven', 'retried', 'discarded')),
  error   text,
  actor   text,
  INDEX {index_attempts_event} (event)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- The highest aggregate_version that has left, for each aggregate whose events have one.
CREATE TABLE IF NOT EXISTS {versions} (
  aggregate_type varchar(255) NOT NULL,
  aggregate_id   varchar(512) NOT NULL,
  version        bigint       NOT NULL,
  left_at        datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (aggregate_type, aggregate_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- Tables of these names that are not ours are found here.
SELECT {failures}.their_state, {shards}.epoch, {relays}.claim, {attempts}.outcome, {versions}.left_at
FROM {failures}, {shards}, {relays}, {attempts}, {versions}
LIMIT 0;

INSERT INTO {schema} (version, outbox_table, shards, payload) VALUES (1, '{table}', {shard_count}, '{payload}');
