-- ? consumer, ? seconds within which nobody else may have cleaned. No row: somebody has.
UPDATE {consumers} SET cleaned_at = utc_timestamp(6)
WHERE consumer = ? AND (cleaned_at IS NULL OR cleaned_at <= utc_timestamp(6) - INTERVAL ? SECOND)
