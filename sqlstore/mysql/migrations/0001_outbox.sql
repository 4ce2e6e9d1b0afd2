-- Every statement can run again, because none can be undone: what a stopped Init left is completed by the next one.
-- Times are in UTC, whatever the time zone of a session. Texts compare by their exact characters: upper and lower case and
-- spaces at the end count. An index cannot leave out settled rows here; it follows a column that is NULL for them.
CREATE TABLE IF NOT EXISTS {events} (
  id                bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id          char(36)     NOT NULL DEFAULT (
                      insert(insert(insert(insert(left(sha2(concat(uuid(), rand()), 256), 32), 21, 0, '-'), 17, 1, '-a'), 13, 1, '-4'), 9, 0, '-')),
  aggregate_type    varchar(255) NOT NULL CHECK (aggregate_type <> ''),
  aggregate_id      varchar(255) NOT NULL CHECK (aggregate_id <> ''),
  event_type        varchar(255) NOT NULL CHECK (event_type <> ''),
  aggregate_version bigint,
  topic             varchar(255),
  payload           {payload_type} NOT NULL,
  content_type      varchar(255) NOT NULL DEFAULT 'application/json',
  headers           longtext,
  dedup_key         varchar(255),
  status            varchar(10)  NOT NULL DEFAULT 'PENDING'
                    CHECK (status IN ('PENDING', 'PROCESSING', 'PUBLISHED', 'DEAD', 'DISCARDED')),
  retry_count       int          NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
  next_attempt_at   datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  last_error        text,
  claim_token       char(36),
  processing_until  datetime(6),
  shard             smallint     GENERATED ALWAYS AS (crc32(aggregate_id) % {shard_count}) STORED,
  published_to      text,
  created_at        datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  published_at      datetime(6),

  -- What may be sent at once, in outbox order.
  ready_shard       smallint     GENERATED ALWAYS AS (
                      CASE WHEN status = 'PENDING' AND next_attempt_at <= created_at THEN shard END) STORED {invisible},
  -- Scheduled events and retries, in the order in which they fall due.
  waiting_shard     smallint     GENERATED ALWAYS AS (
                      CASE WHEN status = 'PENDING' AND next_attempt_at > created_at THEN shard END) STORED {invisible},
  -- The failed events that the later ones of their key wait for, by key.
  blocking_key      varchar(255) GENERATED ALWAYS AS (
                      CASE WHEN status = 'PENDING' AND last_error IS NOT NULL THEN aggregate_id END) STORED {invisible},
  -- What waits for another attempt, by shard, to find the oldest.
  failed_shard      smallint     GENERATED ALWAYS AS (
                      CASE WHEN status = 'PENDING' AND coalesce(last_error, '') <> '' THEN shard END) STORED {invisible},
  -- Which versions of an aggregate wait, to find gaps between them.
  versioned_key     varchar(255) GENERATED ALWAYS AS (
                      CASE WHEN status = 'PENDING' AND aggregate_version IS NOT NULL THEN aggregate_id END) STORED {invisible},
  processing_due    datetime(6)  GENERATED ALWAYS AS (
                      CASE WHEN status = 'PROCESSING' THEN coalesce(processing_until, timestamp '1970-01-01 00:00:00') END) STORED {invisible},
  given_up          varchar(10)  GENERATED ALWAYS AS (
                      CASE WHEN status IN ('DEAD', 'DISCARDED') THEN status END) STORED {invisible},

  CONSTRAINT `{events_name}_event_id_is_uuid` CHECK (char_length(event_id) = 36 AND event_id = lower(event_id)),
  CONSTRAINT `{events_name}_headers_are_json` CHECK (json_valid(headers) AND json_type(headers) = 'OBJECT'),
  CONSTRAINT `{events_name}_payload_fits` {payload_check},
  UNIQUE INDEX {index_event_id} (event_id),
  UNIQUE INDEX {index_dedup} (dedup_key),
  INDEX {index_ready} (ready_shard, id),
  INDEX {index_waiting} (waiting_shard, next_attempt_at, id),
  INDEX {index_blocking} (blocking_key, id),
  INDEX {index_failed} (failed_shard, id),
  INDEX {index_gaps} (versioned_key, aggregate_version),
  INDEX {index_processing} (processing_due, id),
  INDEX {index_given_up} (given_up, id)
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
  sinks         longtext     NOT NULL CHECK (json_valid(sinks))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- What failed, and what operators did, for each event. at and id give the order.
CREATE TABLE IF NOT EXISTS {attempts} (
  id      bigint      NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event   bigint      NOT NULL,
  at      datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
  outcome varchar(10) NOT NULL CHECK (outcome IN ('retry', 'dead', 'redriven', 'retried', 'discarded')),
  error   text,
  actor   text,
  INDEX {index_attempts_event} (event, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- Tables of these names that are not ours are found here.
SELECT {events}.event_id, {events}.given_up, {shards}.epoch, {relays}.heartbeat_at, {attempts}.outcome
FROM {events}, {shards}, {relays}, {attempts}
LIMIT 0;

INSERT INTO {schema} (version, outbox_table, shards, payload) VALUES (1, '{table}', {shard_count}, '{payload}');
