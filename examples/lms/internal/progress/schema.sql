CREATE TABLE IF NOT EXISTS missions (
  id     text PRIMARY KEY,
  course text NOT NULL UNIQUE,
  goal   int  NOT NULL
);
CREATE TABLE IF NOT EXISTS mission_steps (
  learner text NOT NULL,
  mission text NOT NULL REFERENCES missions,
  steps   int  NOT NULL,
  PRIMARY KEY (learner, mission)
);
CREATE TABLE IF NOT EXISTS experience (
  learner text   PRIMARY KEY,
  points  bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS awards (
  learner    text        NOT NULL,
  mission    text        NOT NULL REFERENCES missions,
  awarded_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO missions VALUES ('gopher', 'go', 3), ('querier', 'sql', 2) ON CONFLICT DO NOTHING;
