# shellcheck shell=bash disable=SC2034 # names are shared with scripts/servers
# What MariaDB and MySQL servers share. Tests use a user who may do everything, from 127.0.0.1 only.

mysql_address() { # PORT
  echo "mysql://postrider:postrider@127.0.0.1:$1/postrider"
}

# write_mysql_grants FILE: the server reads it with each start, before it serves clients.
write_mysql_grants() {
  cat >"$1" <<'SQL'
CREATE DATABASE IF NOT EXISTS postrider CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'postrider'@'127.0.0.1' IDENTIFIED BY 'postrider';
GRANT ALL ON *.* TO 'postrider'@'127.0.0.1' WITH GRANT OPTION;
SQL
}

# command_mysql DIR PORT SERVER...: sets the array command. The socket's name is relative to the data, because the path
# of a socket may not be long. The binary log holds rows with the names of their columns.
command_mysql() {
  local dir=$1 port=$2
  shift 2
  command=("$@" --no-defaults --datadir="$dir/data" --tmpdir="$dir/tmp" --socket=socket --pid-file="$dir/server.pid"
    --init-file="$dir/grants.sql" --bind-address=127.0.0.1 --port="$port" --skip-name-resolve --max-connections=300
    --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=1 --sync-binlog=1
    --server-id=1 --log-bin=bin --binlog-row-image=FULL --binlog-row-metadata=FULL)
}

mysql_client=(--no-defaults --protocol=tcp --host=127.0.0.1 --user=postrider --password=postrider
  --connect-timeout=2 --batch --skip-column-names --execute='SELECT 1')
