INSERT INTO experience AS now (learner, points) VALUES ($1, $2)
ON CONFLICT (learner) DO UPDATE SET points = now.points + excluded.points
