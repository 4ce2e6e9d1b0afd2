CREATE TABLE IF NOT EXISTS lessons (
  id     text PRIMARY KEY,
  course text NOT NULL,
  points int  NOT NULL
);
CREATE TABLE IF NOT EXISTS completions (
  learner      text        NOT NULL,
  lesson       text        NOT NULL REFERENCES lessons,
  completed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (learner, lesson)
);
INSERT INTO lessons VALUES ('go-1', 'go', 10), ('go-2', 'go', 20), ('go-3', 'go', 30), ('sql-1', 'sql', 15), ('sql-2', 'sql', 25)
ON CONFLICT DO NOTHING;
