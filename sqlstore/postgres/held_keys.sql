-- Returns how many keys wait for an operator.
SELECT count(DISTINCT event_key) FROM {holds} WHERE NOT redriven;
