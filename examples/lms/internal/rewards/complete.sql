INSERT INTO quests (learner, quest, completed_at) VALUES (?, ?, utc_timestamp(6)) ON DUPLICATE KEY UPDATE quest = VALUES(quest)
