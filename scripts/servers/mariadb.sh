# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# MariaDB as the distribution has it: 10.11 on Debian 12.

mariadb_variable=POSTRIDER_TEST_MARIADB
mariadb_port=25406
mariadb_needs=(mariadbd=mariadb-server mariadb=mariadb-client)
mariadb_stop_signal=TERM # INT ends nothing

mariadb_address() { # PORT
  mysql_address "$1"
}

mariadb_install() { :; }

mariadb_prepare() { # DIR PORT
  local dir=$1
  write_mysql_grants "$dir/grants.sql"
  [[ ! -e $dir/data ]] || return 0
  rm -rf "$dir/data.new"
  mkdir -p "$dir/tmp"
  quietly "$dir/install.log" mariadb-install-db --no-defaults "$mariadb_user" --datadir="$dir/data.new" \
    --auth-root-authentication-method=normal --skip-test-db
  mv "$dir/data.new" "$dir/data"
}

mariadb_command() { # DIR PORT
  command_mysql "$1" "$2" mariadbd
  command+=("$mariadb_user" --secure-file-priv="$1/tmp" --binlog-format=ROW --gtid-strict-mode=1)
}

mariadb_answers() { # DIR PORT
  [[ $(mariadb "${mysql_client[@]}" --port="$2" 2>/dev/null) == 1 ]]
}

# Root's server stays root's: as another user it could not see the files below root's home and the temporary folders of
# tests, and would take them for those of another server.
mariadb_user=--user=$(id --user --name)
