# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# MySQL 9.7 or newer, chrooted to a root of newer Debian packages.

mysql_variable=POSTRIDER_TEST_MYSQL
mysql_port=25497
mysql_needs=()
mysql_stop_signal=TERM # INT ends nothing
mysql_home=$(newer_root mysql)/srv

mysql_install() {
  unpack_newer mysql mysql mysql-server-core mysql-client-core
}

mysql_prepare() { # DIR PORT
  local dir; dir=$(dir_in_root mysql "$1")
  write_mysql_grants "$1/grants.sql"
  rm -f "$1/data/socket.lock" # left by a kill; its pid may be a zombie's or another process's, and then the server refuses to start
  [[ ! -e $1/data ]] || return 0
  rm -rf "$1/data.new"
  mkdir -p "$1/tmp"
  chown "$newer_user:$newer_user" "$1" "$1/tmp"
  quietly "$1/initialize.log" "${in_mysql[@]}" mysqld --no-defaults --initialize-insecure --datadir="$dir/data.new"
  mv "$1/data.new" "$1/data"
}

mysql_command() { # DIR PORT
  command_mysql "$(dir_in_root mysql "$1")" "$2" "${in_mysql[@]}" mysqld
  command+=(--mysqlx=0 --secure-file-priv=NULL --gtid-mode=ON --enforce-gtid-consistency=ON)
}

mysql_answers() { # DIR PORT
  [[ $("${in_mysql[@]}" mysql "${mysql_client[@]}" --port="$2" 2>/dev/null) == 1 ]]
}

in_mysql=(chroot --userspec=mysql:mysql "$(newer_root mysql)")
