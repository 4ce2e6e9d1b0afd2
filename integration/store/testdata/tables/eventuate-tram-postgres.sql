CREATE TABLE message (
  id                varchar(767) PRIMARY KEY,
  destination       text NOT NULL,
  headers           text NOT NULL,
  payload           text NOT NULL,
  published         smallint DEFAULT 0,
  message_partition smallint,
  creation_time     bigint
);
CREATE INDEX message_published_idx ON message (published, id);
