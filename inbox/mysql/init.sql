-- One row for each message that a consumer has applied. Whoever applies inserts consumer and dedup_key; the rest is optional.
-- Times are in UTC. dedup_key comes first in the key so that the receipts of one event are found by it.
CREATE TABLE IF NOT EXISTS {receipts} (
  consumer          varchar(255) NOT NULL CHECK (consumer <> ''),
  dedup_key         varchar(255) NOT NULL CHECK (dedup_key <> ''),
  applied_at        datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  event_id          varchar(255),                  -- where it differs from dedup_key
  source            text,                          -- where the message that was applied came from
  duplicates        bigint       NOT NULL DEFAULT 0, -- how often it came again
  last_duplicate_at datetime(6),
  PRIMARY KEY (dedup_key, consumer),
  INDEX {applied_index} (consumer, applied_at),
  INDEX {event_index} (event_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- Who cleans, and how long receipts are kept.
CREATE TABLE IF NOT EXISTS {consumers} (
  consumer       varchar(255) NOT NULL PRIMARY KEY CHECK (consumer <> ''),
  window_seconds bigint       NOT NULL,
  registered_at  datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  cleaned_at     datetime(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- Receipts that were forgotten on purpose.
CREATE TABLE IF NOT EXISTS {audit} (
  id         bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at         datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  who        varchar(255) NOT NULL,
  action     varchar(255) NOT NULL,
  consumer   varchar(255) NOT NULL,
  dedup_key  varchar(255) NOT NULL,
  applied_at datetime(6)  NOT NULL, -- when the forgotten receipt was written
  reason     text         NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};
