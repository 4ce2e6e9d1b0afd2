SELECT split_part(version(), ' on ', 1), current_setting('server_version_num')::int >= 130000, current_user;
