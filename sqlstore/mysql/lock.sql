-- Only one at a time creates or upgrades the tables. Returns whether the connection is that one, after waiting for others.
SELECT get_lock(concat('postrider ', left(sha2(concat_ws('.', coalesce(nullif('{database}', ''), database()), '{side}'), 256), 32)), 30) = 1;
