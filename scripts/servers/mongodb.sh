# shellcheck shell=bash disable=SC2034,SC2054,SC2154 # commas are setpriv's and PostgreSQL's; names are shared with scripts/services
# FerretDB in MongoDB's place where no Docker engine runs: it speaks MongoDB's protocol and keeps the data in PostgreSQL 18
# with the documentdb extension, which is chrooted to a root of newer Debian packages. It has no transactions and
# no change streams; docs/mongodb.md says what that leaves untested.

mongodb_variable=POSTRIDER_TEST_MONGODB
mongodb_port=25417
mongodb_needs=()
mongodb_stop_signal=TERM
mongodb_home=$(newer_root mongodb)/srv

mongodb_address() { # PORT
  echo "mongodb://127.0.0.1:$1/"
}

mongodb_install() {
  build_ferretdb
  unpack_newer mongodb postgres postgresql-18 postgresql-18-documentdb
  # The package does it by update-alternatives.
  ln -sf postgis-3.control "$(newer_root mongodb)/usr/share/postgresql/18/extension/postgis.control"
}

build_ferretdb() {
  [[ ! -e $ferretdb_binary ]] || return 0
  command -v go >/dev/null || fail "mongodb: no go command to build FerretDB with: install Go as go.mod names it, or set $mongodb_variable"
  say 'mongodb: building FerretDB'
  quietly "$cache/ferretdb.log" env GOBIN="$cache/ferretdb.part" GOFLAGS= go install "github.com/FerretDB/FerretDB/v2/cmd/ferretdb@$ferretdb_version"
  mv "$cache/ferretdb.part/ferretdb" "$ferretdb_binary"
}

# The extension is created by a server without clients, so that the one that is started next has it.
mongodb_prepare() { # DIR PORT
  local dir; dir=$(dir_in_root mongodb "$1")
  chown "$newer_user:$newer_user" "$1"
  prepare_postgres "$(newer_root mongodb)" "$dir" "${in_mongodb[@]}" "$mongodb_bin/initdb"
  [[ ! -e $1/extended ]] || return 0
  echo 'local all postgres trust' >"$1/data/pg_hba.conf"
  quietly "$1/extension.log" "${in_mongodb[@]}" "$mongodb_bin/postgres" --single -D "$dir/data" "${documentdb[@]}" postgres \
    <<<'CREATE EXTENSION documentdb CASCADE;'
  touch "$1/extended"
}

# The process is FerretDB's, and PostgreSQL is its child. Data need not be synced to outlive the end of processes.
mongodb_command() { # DIR PORT
  local dir; dir=$(dir_in_root mongodb "$1")
  local postgres=("${in_mongodb[@]}" "$mongodb_bin/postgres" -D "$dir/data" "${documentdb[@]}"
    -c listen_addresses= -c "unix_socket_directories=$dir" -c fsync=off -c shared_buffers=64MB -c jit=off
    -c cron.use_background_workers=on -c cron.log_run=off -c cron.log_statement=off
    -c "documentdb.localhost_connection_string=host=$dir" -c timezone=UTC -c log_timezone=UTC)
  local ferretdb=("$ferretdb_binary" --listen-addr "127.0.0.1:$2" --postgresql-url "postgres:///postgres?host=$1&user=postgres"
    --state-dir "$1" --telemetry disable --no-auth --debug-addr - --log-level error)
  command=(bash -c "${postgres[*]@Q} & exec ${ferretdb[*]@Q}")
}

mongodb_answers() { # DIR PORT
  "$ferretdb_binary" ping --listen-addr "127.0.0.1:$2" --telemetry disable --log-level error >/dev/null 2>&1
}

# What runs in the root is told to stop when the process that started it ends, however that ends.
in_mongodb=(setpriv --pdeathsig INT "--reuid=$newer_user" "--regid=$newer_user" --clear-groups
  --inh-caps=-all,+sys_chroot,+dac_override --ambient-caps=-all,+sys_chroot,+dac_override chroot "$(newer_root mongodb)")
mongodb_bin=/usr/lib/postgresql/18/bin
documentdb=(-c shared_preload_libraries=pg_cron,pg_documentdb_core,pg_documentdb -c cron.database_name=postgres)
ferretdb_version=v2.7.0
ferretdb_binary=$cache/ferretdb-$ferretdb_version
