CREATE TABLE IF NOT EXISTS quests (
  learner      varchar(255) NOT NULL,
  quest        varchar(255) NOT NULL,
  completed_at datetime(6)  NOT NULL,
  PRIMARY KEY (learner, quest)
);
CREATE TABLE IF NOT EXISTS purses (
  learner varchar(255) NOT NULL PRIMARY KEY,
  coins   bigint       NOT NULL
);
