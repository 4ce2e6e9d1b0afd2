-- Services that start together take turns.
SELECT pg_advisory_xact_lock(hashtextextended('wallet schema', 0));

CREATE TABLE IF NOT EXISTS wallets (
  id      text   PRIMARY KEY,
  balance bigint NOT NULL CHECK (balance >= 0),
  version bigint NOT NULL DEFAULT 0
);

-- What moved a wallet's balance, one row for each version of the wallet.
CREATE TABLE IF NOT EXISTS entries (
  wallet    text   NOT NULL REFERENCES wallets,
  version   bigint NOT NULL,
  amount    bigint NOT NULL,
  reference text   NOT NULL UNIQUE,
  PRIMARY KEY (wallet, version)
);

CREATE TABLE IF NOT EXISTS orders (
  id     text   PRIMARY KEY,
  wallet text   NOT NULL REFERENCES wallets,
  amount bigint NOT NULL CHECK (amount > 0)
);
