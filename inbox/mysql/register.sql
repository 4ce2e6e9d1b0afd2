-- ? consumer, ? window in seconds.
INSERT INTO {consumers} (consumer, window_seconds)
SELECT entry.consumer, entry.window_seconds FROM (SELECT ? AS consumer, ? AS window_seconds) entry
ON DUPLICATE KEY UPDATE window_seconds = entry.window_seconds
