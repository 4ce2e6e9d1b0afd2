# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# PostgreSQL 18, chrooted to a root of newer Debian packages.

postgres18_variable=POSTRIDER_TEST_POSTGRES18
postgres18_port=25418
postgres18_needs=(psql=postgresql-client)
postgres18_stop_signal=INT
postgres18_home=$(newer_root postgres18)/srv

postgres18_address() { # PORT
  postgres_address "$1"
}

postgres18_install() {
  unpack_newer postgres18 postgres postgresql-18
}

postgres18_prepare() { # DIR PORT
  local dir; dir=$(dir_in_root postgres18 "$1")
  chown "$newer_user:$newer_user" "$1"
  prepare_postgres "$(newer_root postgres18)" "$dir" "${in_postgres18[@]}" "$postgres18_bin/initdb"
}

postgres18_command() { # DIR PORT
  command_postgres "$(dir_in_root postgres18 "$1")" "$2" "${in_postgres18[@]}" "$postgres18_bin/postgres"
}

postgres18_answers() { # DIR PORT
  postgres_answers "$1" "$2"
}

in_postgres18=(chroot --userspec=postgres:postgres "$(newer_root postgres18)")
postgres18_bin=/usr/lib/postgresql/18/bin
