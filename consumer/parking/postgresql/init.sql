-- Two CREATE TABLE IF NOT EXISTS at the same time can fail, so they take turns until the end of their transactions.
SELECT pg_advisory_xact_lock(hashtextextended('postrider inbox', 0));

-- A row for each parked key. Whoever changes what is parked of a key updates its row first, which locks it.
CREATE TABLE IF NOT EXISTS {keys} (
  consumer        text        NOT NULL,
  key_hash        text        NOT NULL, -- SHA-256 of parked_key, in hex: keys may be of any length
  parked_key      bytea       NOT NULL, -- the topic, a zero byte, and the key
  parked_at       timestamptz NOT NULL DEFAULT now(),
  due_at          timestamptz NOT NULL, -- nobody takes it before: the next try, or the end of the claim
  claim_token     text,                 -- of whoever tries it now
  attempts        integer     NOT NULL, -- of the first message
  class           text        NOT NULL, -- of its last error
  error           text        NOT NULL,
  letter_error    text        NOT NULL DEFAULT '', -- why its dead letter could not be written
  first_failed_at text        NOT NULL, -- RFC 3339, by the consumer's clock
  asked           boolean     NOT NULL DEFAULT false, -- people want a try: the one after the claim is due at once
  revision        bigint      NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, key_hash)
);
CREATE INDEX IF NOT EXISTS {due_index} ON {keys} (consumer, due_at);

-- The messages of parked keys. id is their order within a key.
CREATE TABLE IF NOT EXISTS {parked} (
  id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer    text        NOT NULL,
  key_hash    text        NOT NULL,
  source_hash text,                           -- SHA-256 of event id and coordinates; null without an event id
  envelope    text        NOT NULL,           -- JSON: everything but the payload
  payload     bytea       NOT NULL,
  parked_at   timestamptz NOT NULL DEFAULT now(),
  given_up_by text, -- who has decided that it is not applied; null unless somebody has
  given_up_reason text
);
CREATE INDEX IF NOT EXISTS {order_index} ON {parked} (consumer, key_hash, id);
CREATE UNIQUE INDEX IF NOT EXISTS {source_index} ON {parked} (consumer, key_hash, source_hash);
