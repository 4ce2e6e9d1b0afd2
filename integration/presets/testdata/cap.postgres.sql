CREATE SCHEMA cap;
CREATE TABLE cap.published (
  "Id"         bigint       PRIMARY KEY NOT NULL,
  "Version"    varchar(20)  NOT NULL,
  "Name"       varchar(200) NOT NULL,
  "Content"    text,
  "Retries"    int          NOT NULL,
  "Added"      timestamp    NOT NULL,
  "ExpiresAt"  timestamp,
  "StatusName" varchar(50)  NOT NULL
);
CREATE INDEX "idx_published_ExpiresAt_StatusName" ON cap.published ("ExpiresAt", "StatusName");
