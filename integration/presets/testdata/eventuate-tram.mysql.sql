CREATE TABLE message (
  id                varchar(767) PRIMARY KEY,
  destination       longtext NOT NULL,
  headers           longtext NOT NULL,
  payload           longtext NOT NULL,
  published         smallint DEFAULT 0,
  message_partition smallint,
  creation_time     bigint
);
CREATE INDEX message_published_idx ON message (published, id);
