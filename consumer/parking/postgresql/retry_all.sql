-- Parameters: 1 consumer, or empty for all. Makes its keys due at once; those that are claimed are due once their claims are given back.
UPDATE {keys} SET due_at = CASE WHEN claim_token IS NULL THEN now() ELSE due_at END, asked = true, revision = revision + 1
WHERE $1 IN ('', consumer)
