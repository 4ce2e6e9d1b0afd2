-- Parameters: 1 consumer, 2 hashes of keys as JSON. Returns those that are parked.
SELECT key_hash FROM {keys} WHERE consumer = $1 AND key_hash IN (SELECT value FROM json_array_elements_text($2::text::json) AS value)
