CREATE TABLE published (
  "Id"         bigint       PRIMARY KEY NOT NULL,
  "Version"    varchar(20)  NOT NULL,
  "Name"       varchar(200) NOT NULL,
  "Content"    text         NULL,
  "Retries"    int          NOT NULL,
  "Added"      timestamp    NOT NULL,
  "ExpiresAt"  timestamp    NULL,
  "StatusName" varchar(50)  NOT NULL
);
