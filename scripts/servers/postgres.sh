# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# PostgreSQL as the distribution has it: 15 on Debian 12.

postgres_variable=POSTRIDER_TEST_POSTGRES
postgres_port=25415
postgres_needs=('/usr/lib/postgresql/*/bin/initdb=postgresql' psql=postgresql-client '/usr/lib/*/faketime/libfaketime.so.1=libfaketime')
postgres_stop_signal=INT # TERM would wait for the clients to leave

postgres_address() { # PORT
  echo "postgres://postgres@127.0.0.1:$1/postgres?sslmode=disable"
}

postgres_install() { :; }

postgres_prepare() { # DIR PORT
  prepare_postgres '' "$1" "${as_postgres[@]}" "$(postgres_bin)/initdb"
}

postgres_command() { # DIR PORT
  command_postgres "$1" "$2" "${as_postgres[@]}" "$(postgres_bin)/postgres"
}

postgres_answers() { # DIR PORT
  [[ $(psql "$(postgres_address "$2")" --no-psqlrc -Atqc 'SELECT 1' 2>/dev/null) == 1 ]]
}

postgres_bin() {
  printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail -n 1
}

# PostgreSQL refuses to run as root. The capability lets its own user reach data below folders that only root
# may enter, such as root's home and the temporary folders of tests.
as_postgres=()
if (( EUID == 0 )); then
  # shellcheck disable=SC2054 # the commas are setpriv's
  as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups
    --inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override)
fi

# What every PostgreSQL server shares. ROOT is the folder it is chrooted to, or empty; DIR is a path in ROOT.

# prepare_postgres ROOT DIR INITDB...: a postmaster that was killed leaves its lock file for good and its
# children for a moment.
prepare_postgres() {
  local root=$1 dir=$2
  shift 2
  await 30 no_process_in "$root$dir/data" || fail "processes of an earlier server still run in $root$dir/data"
  rm -f "$root$dir/data/postmaster.pid"
  [[ ! -e $root$dir/data ]] || return 0
  rm -rf "$root$dir/data.new"
  quietly "$root$dir/initdb.log" "$@" --pgdata="$dir/data.new" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync
  write_postgres_hba "$root$dir/data.new/pg_hba.conf"
  mv "$root$dir/data.new" "$root$dir/data"
}

# no_process_in DATA: every process of a PostgreSQL server has its data as current folder.
no_process_in() {
  local cwd
  for cwd in /proc/[0-9]*/cwd; do
    [[ $(readlink "$cwd") != "$1" ]] || return 1
  done
}

# Only the superuser needs no password, so that tests can have credentials refused.
write_postgres_hba() { # FILE
  cat >"$1" <<'HBA'
host  all          postgres  127.0.0.1/32  trust
host  replication  postgres  127.0.0.1/32  trust
host  all          all       127.0.0.1/32  scram-sha-256
host  replication  all       127.0.0.1/32  scram-sha-256
HBA
}

# command_postgres DIR PORT POSTGRES...: a forgotten replication slot must not fill the disk.
command_postgres() {
  local dir=$1 port=$2
  shift 2
  command=("$@" -D "$dir/data" -c "port=$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
    -c wal_level=logical -c max_wal_senders=20 -c max_replication_slots=20 -c max_slot_wal_keep_size=2GB
    -c max_connections=200 -c timezone=UTC -c log_timezone=UTC)
}
