-- Two CREATE TABLE IF NOT EXISTS at the same time can fail, so they take turns until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('postrider inbox', 0));

-- One row for each message that a consumer has applied. Whoever applies inserts consumer and dedup_key; the rest is optional.
-- dedup_key comes first in the key so that the receipts of one event are found by it.
CREATE TABLE IF NOT EXISTS {receipts} (
  consumer          text        NOT NULL CHECK (consumer <> ''),
  dedup_key         text        NOT NULL CHECK (dedup_key <> ''),
  applied_at        timestamptz NOT NULL DEFAULT now(),
  event_id          text,                        -- where it differs from dedup_key
  source            text,                        -- where the message that was applied came from
  duplicates        bigint      NOT NULL DEFAULT 0, -- how often it came again
  last_duplicate_at timestamptz,
  PRIMARY KEY (dedup_key, consumer)
);

-- Tables of the first form have three columns.
ALTER TABLE {receipts}
  ADD COLUMN IF NOT EXISTS event_id          text,
  ADD COLUMN IF NOT EXISTS source            text,
  ADD COLUMN IF NOT EXISTS duplicates        bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS last_duplicate_at timestamptz;

-- For cleaning and counting, and for finding an event whose receipts have keys of their own.
CREATE INDEX IF NOT EXISTS {applied_index} ON {receipts} (consumer, applied_at);
CREATE INDEX IF NOT EXISTS {event_index} ON {receipts} (event_id) WHERE event_id IS NOT NULL;

-- Who cleans, and how long receipts are kept.
CREATE TABLE IF NOT EXISTS {consumers} (
  consumer       text        NOT NULL PRIMARY KEY CHECK (consumer <> ''),
  window_seconds bigint      NOT NULL,
  registered_at  timestamptz NOT NULL DEFAULT now(),
  cleaned_at     timestamptz
);

-- Receipts that were forgotten on purpose.
CREATE TABLE IF NOT EXISTS {audit} (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT now(),
  who        text        NOT NULL,
  action     text        NOT NULL,
  consumer   text        NOT NULL,
  dedup_key  text        NOT NULL,
  applied_at timestamptz NOT NULL, -- when the forgotten receipt was written
  reason     text        NOT NULL
);
