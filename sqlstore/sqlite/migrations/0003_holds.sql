-- The dead events that hold their keys: no event of these keys is read. A row is written with DEAD, in one transaction.
CREATE TABLE {holds} (
  event     integer PRIMARY KEY,
  event_key text    NOT NULL,
  held_at   text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);

CREATE INDEX {index_holds_key} ON {holds} (event_key);

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 3, outbox_table, shards, payload FROM {schema} WHERE version = 2;
