-- Returns what the user of this connection may not do: privilege, table.
WITH needed(tbl, privilege) AS (VALUES
  ('{events}', 'SELECT'), ('{events}', 'UPDATE'), ('{events}', 'DELETE'),
  ('{shards}', 'SELECT'), ('{shards}', 'INSERT'), ('{shards}', 'UPDATE'),
  ('{relays}', 'SELECT'), ('{relays}', 'INSERT'), ('{relays}', 'UPDATE'), ('{relays}', 'DELETE'),
  ('{attempts}', 'SELECT'), ('{attempts}', 'INSERT'), ('{attempts}', 'DELETE'),
  ('{versions}', 'SELECT'), ('{versions}', 'INSERT'), ('{versions}', 'UPDATE'),
  ('{schema}', 'SELECT')
)
SELECT privilege, tbl FROM needed WHERE has_table_privilege(to_regclass(tbl), privilege) IS FALSE;
