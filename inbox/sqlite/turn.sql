-- ?1 consumer, ?2 seconds within which nobody else may have cleaned. No row: somebody has.
UPDATE {consumers} SET cleaned_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE consumer = ?1 AND (cleaned_at IS NULL OR cleaned_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ?2 || ' seconds'))
