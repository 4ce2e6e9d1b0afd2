-- A row for each parked key. Whoever changes what is parked of a key updates its row first, which locks it. Times are in UTC.
CREATE TABLE IF NOT EXISTS {keys} (
  consumer        varchar(255) NOT NULL,
  key_hash        char(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- SHA-256 of parked_key, in hex: keys may be of any length
  parked_key      longblob     NOT NULL, -- the topic, a zero byte, and the key
  parked_at       datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  due_at          datetime(6)  NOT NULL, -- nobody takes it before: the next try, or the end of the claim
  claim_token     varchar(64)  CHARACTER SET ascii, -- of whoever tries it now
  attempts        int          NOT NULL, -- of the first message
  class           varchar(32)  NOT NULL, -- of its last error
  error           text         NOT NULL,
  letter_error    text         NOT NULL DEFAULT (''), -- why its dead letter could not be written
  first_failed_at varchar(32)  NOT NULL, -- RFC 3339, by the consumer's clock
  asked           boolean      NOT NULL DEFAULT false, -- people want a try: the one after the claim is due at once
  revision        bigint       NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, key_hash),
  INDEX {due_index} (consumer, due_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- The messages of parked keys. id is their order within a key.
CREATE TABLE IF NOT EXISTS {parked} (
  id          bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  consumer    varchar(255) NOT NULL,
  key_hash    char(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source_hash char(64)     CHARACTER SET ascii COLLATE ascii_bin, -- SHA-256 of event id and coordinates; null without an event id
  envelope    longtext     NOT NULL, -- JSON: everything but the payload
  payload     longblob     NOT NULL,
  parked_at   datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  given_up_by varchar(255), -- who has decided that it is not applied; null unless somebody has
  given_up_reason text,
  INDEX {order_index} (consumer, key_hash, id),
  UNIQUE INDEX {source_index} (consumer, key_hash, source_hash)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};
