-- The table of receipts, as package inbox makes it. Whoever applies a message inserts consumer and dedup_key; the rest is optional.
CREATE TABLE IF NOT EXISTS inbox_receipts (
  consumer          varchar(255) NOT NULL CHECK (consumer <> ''),
  dedup_key         varchar(255) NOT NULL CHECK (dedup_key <> ''),
  applied_at        datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  event_id          varchar(255),                  -- where it differs from dedup_key
  source            text,                          -- where the message that was applied came from
  duplicates        bigint       NOT NULL DEFAULT 0, -- how often it came again
  last_duplicate_at datetime(6),
  PRIMARY KEY (dedup_key, consumer),
  INDEX inbox_receipts_applied (consumer, applied_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*!80019 utf8mb4_0900_bin */ /*M!100600 utf8mb4_nopad_bin */;

-- What the consumer's messages have an effect on.
CREATE TABLE IF NOT EXISTS balances (
  wallet varchar(255) PRIMARY KEY,
  amount bigint NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*!80019 utf8mb4_0900_bin */ /*M!100600 utf8mb4_nopad_bin */;
