-- Times are text, 'YYYY-MM-DD HH:MM:SS.SSS' in UTC, which compare as text.
-- dedup_key comes first in the key so that the receipts of one event are found by it.
CREATE TABLE IF NOT EXISTS {receipts} (
  consumer   text NOT NULL CHECK (consumer <> ''),
  dedup_key  text NOT NULL CHECK (dedup_key <> ''),
  applied_at text NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  PRIMARY KEY (dedup_key, consumer)
) WITHOUT ROWID;
