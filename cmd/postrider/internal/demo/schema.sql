-- What the order application keeps.
CREATE TABLE IF NOT EXISTS orders (
    id      text PRIMARY KEY,
    status  text NOT NULL,
    version integer NOT NULL
);

-- Which changes of orders were committed, each with the id of its event: what the ledger holds everything against.
CREATE TABLE IF NOT EXISTS order_changes (
    event_id text PRIMARY KEY,
    order_id text NOT NULL,
    version  integer NOT NULL
);

-- The events of transactions that the application rolled back.
CREATE TABLE IF NOT EXISTS rolled_back (
    event_id text PRIMARY KEY
);

-- What the consumer does with an event. No constraint keeps an event from being applied twice: the inbox has to.
CREATE TABLE IF NOT EXISTS shipments (
    event_id text NOT NULL,
    order_id text NOT NULL,
    what     text NOT NULL
);
CREATE INDEX IF NOT EXISTS shipments_event ON shipments (event_id);
