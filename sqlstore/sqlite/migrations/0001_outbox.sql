-- Times are text, 'YYYY-MM-DD HH:MM:SS.SSS' in UTC, which compare as text.
-- SQLite has no hash function: the shard mixes the key's last eight and first four characters.
CREATE TABLE {events} (
  id                integer PRIMARY KEY AUTOINCREMENT,
  event_id          text    NOT NULL UNIQUE DEFAULT (lower(
                      hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' ||
                      substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))
                    CONSTRAINT event_id_is_lower_case_uuid CHECK (length(event_id) = 36 AND event_id = lower(event_id)),
  aggregate_type    text    NOT NULL CHECK (aggregate_type <> ''),
  aggregate_id      text    NOT NULL CHECK (aggregate_id <> ''),
  event_type        text    NOT NULL CHECK (event_type <> ''),
  aggregate_version integer,
  topic             text,
  payload           {payload_type} NOT NULL {payload_check},
  content_type      text    NOT NULL DEFAULT 'application/json',
  headers           text    CONSTRAINT headers_are_a_json_object
                    CHECK (headers IS NULL OR (json_valid(headers) AND json_type(headers) = 'object')),
  dedup_key         text,
  status            text    NOT NULL DEFAULT 'PENDING'
                    CHECK (status IN ('PENDING', 'PROCESSING', 'PUBLISHED', 'DEAD', 'DISCARDED')),
  retry_count       integer NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
  next_attempt_at   text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
                    CONSTRAINT next_attempt_at_is_utc_with_milliseconds
                    CHECK (next_attempt_at IS strftime('%Y-%m-%d %H:%M:%f', next_attempt_at)),
  last_error        text,
  claim_token       text,
  processing_until  text    CHECK (processing_until IS strftime('%Y-%m-%d %H:%M:%f', processing_until)),
  shard             integer GENERATED ALWAYS AS ((
                      coalesce(unicode(substr(aggregate_id, -1, 1)), 0) +
                      coalesce(unicode(substr(aggregate_id, -2, 1)), 0) * 7 +
                      coalesce(unicode(substr(aggregate_id, -3, 1)), 0) * 51 +
                      coalesce(unicode(substr(aggregate_id, -4, 1)), 0) * 357 +
                      coalesce(unicode(substr(aggregate_id, -5, 1)), 0) * 2467 +
                      coalesce(unicode(substr(aggregate_id, -6, 1)), 0) * 17393 +
                      coalesce(unicode(substr(aggregate_id, -7, 1)), 0) * 121453 +
                      coalesce(unicode(substr(aggregate_id, -8, 1)), 0) * 850177 +
                      coalesce(unicode(substr(aggregate_id, 1, 1)), 0) * 29 +
                      coalesce(unicode(substr(aggregate_id, 2, 1)), 0) * 841 +
                      coalesce(unicode(substr(aggregate_id, 3, 1)), 0) * 24391 +
                      coalesce(unicode(substr(aggregate_id, 4, 1)), 0) * 707281) % {shard_count}) STORED,
  published_to      text,
  created_at        text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
                    CONSTRAINT created_at_is_utc_with_milliseconds
                    CHECK (created_at IS strftime('%Y-%m-%d %H:%M:%f', created_at)),
  published_at      text    CHECK (published_at IS strftime('%Y-%m-%d %H:%M:%f', published_at))
);

-- Producers drop a second add by: ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
CREATE UNIQUE INDEX {index_dedup} ON {events} (dedup_key) WHERE dedup_key IS NOT NULL;

-- What may be sent at once, in outbox order.
CREATE INDEX {index_ready} ON {events} (shard, id) WHERE status = 'PENDING' AND next_attempt_at <= created_at;

-- Scheduled events and retries, in the order in which they fall due.
CREATE INDEX {index_waiting} ON {events} (shard, next_attempt_at, id) WHERE status = 'PENDING' AND next_attempt_at > created_at;

-- The failed events that the later ones of their key wait for, by key.
CREATE INDEX {index_blocking} ON {events} (aggregate_id, id) WHERE status = 'PENDING' AND last_error IS NOT NULL;

-- What waits for another attempt, by shard, to find the oldest. It is told in other words than above, so that neither
-- index can be taken for the other.
CREATE INDEX {index_failed} ON {events} (shard, id) WHERE status = 'PENDING' AND retry_count > 0;

CREATE INDEX {index_processing} ON {events} (processing_until, id) WHERE status = 'PROCESSING';

CREATE INDEX {index_dead} ON {events} (id) WHERE status = 'DEAD';

CREATE INDEX {index_discarded} ON {events} (id) WHERE status = 'DISCARDED';

CREATE TABLE {shards} (
  relay_name  text    NOT NULL,
  shard       integer NOT NULL,
  owner       text,
  epoch       integer NOT NULL DEFAULT 0,
  lease_until text,
  PRIMARY KEY (relay_name, shard),
  CHECK ((owner IS NULL) = (lease_until IS NULL))
) WITHOUT ROWID;

CREATE TABLE {relays} (
  id            text PRIMARY KEY,
  relay_name    text NOT NULL,
  host          text NOT NULL,
  version       text NOT NULL,
  started_at    text NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  heartbeat_at  text NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  lease_seconds real NOT NULL,
  sinks         text NOT NULL
) WITHOUT ROWID;

-- What failed, and what operators did, for each event. at and id give the order.
CREATE TABLE {attempts} (
  id      integer PRIMARY KEY AUTOINCREMENT,
  event   integer NOT NULL,
  at      text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  outcome text    NOT NULL CHECK (outcome IN ('retry', 'dead', 'redriven', 'retried', 'discarded')),
  error   text,
  actor   text
);

CREATE INDEX {index_attempts_event} ON {attempts} (event, id);

INSERT INTO {schema} (version, outbox_table, shards, payload) VALUES (1, '{table}', {shard_count}, '{payload}');
