-- The table of receipts, as package inbox makes it. Whoever applies a message inserts consumer and dedup_key; the rest is optional.
CREATE TABLE IF NOT EXISTS inbox_receipts (
  consumer          text        NOT NULL CHECK (consumer <> ''),
  dedup_key         text        NOT NULL CHECK (dedup_key <> ''),
  applied_at        timestamptz NOT NULL DEFAULT now(),
  event_id          text,                        -- where it differs from dedup_key
  source            text,                        -- where the message that was applied came from
  duplicates        bigint      NOT NULL DEFAULT 0, -- how often it came again
  last_duplicate_at timestamptz,
  PRIMARY KEY (dedup_key, consumer)
);
CREATE INDEX IF NOT EXISTS inbox_receipts_applied ON inbox_receipts (consumer, applied_at);

-- What the consumer's messages have an effect on.
CREATE TABLE IF NOT EXISTS balances (
  wallet text   PRIMARY KEY,
  amount bigint NOT NULL
);
