-- $1 consumer, $2 seconds within which nobody else may have cleaned. No row: somebody has.
UPDATE {consumers} SET cleaned_at = now()
WHERE consumer = $1 AND (cleaned_at IS NULL OR cleaned_at <= now() - make_interval(secs => $2::double precision))
