# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Valkey 9 or newer, chrooted to a root of newer Debian packages. Its variations are those of redis.sh.

valkey_variable=POSTRIDER_TEST_VALKEY
valkey_port=25480
valkey_needs=()
valkey_stop_signal=TERM
valkey_home=$(newer_root valkey)/srv

valkey_address() { # PORT
  redis_address "$1"
}

valkey_install() {
  unpack_newer valkey valkey valkey-server valkey-tools
}

valkey_prepare() { # DIR PORT
  prepare_redis "$1/server.conf"
  chown "$newer_user:$newer_user" "$1" "$1/server.conf"
}

valkey_command() { # DIR PORT
  command_redis "$(dir_in_root valkey "$1")" "$2" "${in_valkey[@]}" valkey-server
}

valkey_answers() { # DIR PORT
  [[ $(timeout 2 "${in_valkey[@]}" valkey-cli -h 127.0.0.1 -p "$2" PING 2>/dev/null) == PONG ]]
}

in_valkey=(chroot --userspec=valkey:valkey "$(newer_root valkey)")
