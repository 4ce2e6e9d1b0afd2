-- Two CREATE TABLE IF NOT EXISTS at the same time can fail, so they take turns until the end of their transactions.
SELECT pg_advisory_xact_lock(hashtextextended('postrider inbox', 0));

-- dedup_key comes first in the key so that the receipts of one event are found by it.
CREATE TABLE IF NOT EXISTS {receipts} (
  consumer   text        NOT NULL CHECK (consumer <> ''),
  dedup_key  text        NOT NULL CHECK (dedup_key <> ''),
  applied_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (dedup_key, consumer)
);
