SELECT release_lock(concat('postrider ', left(sha2(concat_ws('.', coalesce(nullif('{database}', ''), database()), '{side}'), 256), 32)));
