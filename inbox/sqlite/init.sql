-- One row for each message that a consumer has applied. Whoever applies inserts consumer and dedup_key; the rest is optional.
-- Times are text, 'YYYY-MM-DD HH:MM:SS.SSS' in UTC, which compare as text.
-- dedup_key comes first in the key so that the receipts of one event are found by it.
CREATE TABLE IF NOT EXISTS {receipts} (
  consumer          text    NOT NULL CHECK (consumer <> ''),
  dedup_key         text    NOT NULL CHECK (dedup_key <> ''),
  applied_at        text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  event_id          text,                       -- where it differs from dedup_key
  source            text,                       -- where the message that was applied came from
  duplicates        integer NOT NULL DEFAULT 0, -- how often it came again
  last_duplicate_at text,
  PRIMARY KEY (dedup_key, consumer)
) WITHOUT ROWID;

-- Who cleans, and how long receipts are kept.
CREATE TABLE IF NOT EXISTS {consumers} (
  consumer       text    NOT NULL PRIMARY KEY CHECK (consumer <> ''),
  window_seconds integer NOT NULL,
  registered_at  text    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  cleaned_at     text
) WITHOUT ROWID;

-- Receipts that were forgotten on purpose.
CREATE TABLE IF NOT EXISTS {audit} (
  id         integer PRIMARY KEY,
  at         text NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  who        text NOT NULL,
  action     text NOT NULL,
  consumer   text NOT NULL,
  dedup_key  text NOT NULL,
  applied_at text NOT NULL, -- when the forgotten receipt was written
  reason     text NOT NULL
);
