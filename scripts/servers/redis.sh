# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Redis as the distribution has it: 7.0 on Debian 12. It appends to a file and syncs it every second.
#
# Variations for a private server, from the environment of launch:
#   REDIS_OPTIONS      more options of the server, such as "--cluster-enabled yes"
#   REDIS_SENTINEL_OF  a port: be the sentinel of the server there, under the name postrider

redis_variable=POSTRIDER_TEST_REDIS
redis_port=25479
redis_needs=(redis-server=redis-server redis-cli=redis-tools)
redis_stop_signal=TERM

redis_address() { # PORT
  echo "redis://127.0.0.1:$1"
}

redis_install() { :; }

redis_prepare() { # DIR PORT
  prepare_redis "$1/server.conf"
}

redis_command() { # DIR PORT
  command_redis "$1" "$2" redis-server
}

redis_answers() { # DIR PORT
  [[ $(timeout 2 redis-cli -h 127.0.0.1 -p "$2" PING 2>/dev/null) == PONG ]]
}

# What Redis and Valkey share. DIR is a path as the server sees it.

# A sentinel writes what it learns into its file, so the file is made once.
prepare_redis() { # FILE
  [[ ! -e $1 ]] || return 0
  : >"$1"
  [[ -n ${REDIS_SENTINEL_OF-} ]] || return 0
  cat >"$1" <<CONF
sentinel monitor postrider 127.0.0.1 $REDIS_SENTINEL_OF 1
sentinel down-after-milliseconds postrider 500
sentinel failover-timeout postrider 5000
CONF
}

# command_redis DIR PORT SERVER...: sets the array command.
command_redis() {
  local dir=$1 port=$2 options
  shift 2
  command=("$@" "$dir/server.conf" --bind 127.0.0.1 --port "$port" --dir "$dir")
  if [[ -n ${REDIS_SENTINEL_OF-} ]]; then
    command+=(--sentinel)
    return
  fi
  read -ra options <<<"${REDIS_OPTIONS-}"
  command+=(--appendonly yes --appendfsync everysec --save '' "${options[@]}")
}
