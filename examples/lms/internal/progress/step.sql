-- A step of the course's mission: one row when that completes it, else none. The row of steps is locked until the transaction ends,
-- so of several transactions only one sees the last step.
WITH stepped AS (
  INSERT INTO mission_steps AS now (learner, mission, steps) SELECT $1, id, 1 FROM missions WHERE course = $2
  ON CONFLICT (learner, mission) DO UPDATE SET steps = now.steps + 1
  RETURNING mission, steps
)
SELECT id FROM missions JOIN stepped ON mission = id WHERE steps = goal
