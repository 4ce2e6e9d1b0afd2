-- $1 consumer, $2 window in seconds.
INSERT INTO {consumers} AS known (consumer, window_seconds) VALUES ($1, $2)
ON CONFLICT (consumer) DO UPDATE SET window_seconds = excluded.window_seconds WHERE known.window_seconds <> excluded.window_seconds
