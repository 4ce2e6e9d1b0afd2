-- For cleaning and counting, and for finding an event whose receipts have keys of their own.
CREATE INDEX IF NOT EXISTS {applied_index} ON {receipts_name} (consumer, applied_at);
CREATE INDEX IF NOT EXISTS {event_index} ON {receipts_name} (event_id) WHERE event_id IS NOT NULL;
