SELECT version, outbox_table, shards, payload FROM {schema} ORDER BY version DESC LIMIT 1;
