-- ? receipts as JSON, ? consumer. A receipt that was met has more duplicates than were sent with it.
SELECT {receipt}
FROM JSON_TABLE(?, '$[*]' COLUMNS (entry_key varchar(255) CHARACTER SET utf8mb4 PATH '$.dedup_key')) entry
STRAIGHT_JOIN {receipts} ON dedup_key = entry.entry_key AND consumer = ?
