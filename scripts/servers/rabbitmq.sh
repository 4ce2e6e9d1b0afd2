# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# RabbitMQ as the distribution has it: 3.10 on Debian 12.
# Besides PORT it takes PORT+1 and PORT+2, for Erlang's own connections.
#
# Variations for a private server, from the environment of launch:
#   RABBITMQ_MAX_MESSAGE_SIZE  the largest payload in bytes
#   RABBITMQ_TLS               1: it serves TLS at 127.0.0.2:PORT as well; clients trust DIR/ca.pem
# A private server is operated by DIR/ctl, which is its rabbitmqctl.

rabbitmq_variable=POSTRIDER_TEST_RABBITMQ
rabbitmq_port=25472
rabbitmq_needs=('/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server=rabbitmq-server' openssl=openssl)
rabbitmq_stop_signal=TERM

rabbitmq_address() { # PORT
  echo "amqp://guest:guest@127.0.0.1:$1/"
}

rabbitmq_install() { :; }

rabbitmq_prepare() { # DIR PORT
  prepare_rabbitmq '' "$1" "$2"
}

rabbitmq_command() { # DIR PORT
  command_rabbitmq '' "$1" "$2"
}

rabbitmq_answers() { # DIR PORT
  rabbitmq_speaks "$1" "$2"
}

# What every RabbitMQ server shares. ROOT is the folder it is chrooted to, or empty; DIR is a path in ROOT.

prepare_rabbitmq() { # ROOT DIR PORT
  local root=$1 dir=$2 port=$3
  mkdir -p "$root$dir"/{home,data,logs}
  [[ ${RABBITMQ_TLS-} != 1 || -e $root$dir/ca.pem ]] || make_rabbitmq_certificate "$root$dir"
  rabbitmq_conf "$dir" "$port" >"$root$dir/rabbitmq.conf"
  : >"$root$dir/env.conf"
  echo '[].' >"$root$dir/enabled_plugins"
  write_rabbitmq_ctl "$root" "$dir" "$port"
}

# Memory is measured by what needs no /proc, which a chroot does not have.
rabbitmq_conf() { # DIR PORT
  cat <<CONF
listeners.tcp.1 = 127.0.0.1:$2
loopback_users.guest = true
vm_memory_calculation_strategy = allocated
total_memory_available_override_value = 2GB
CONF
  [[ -z ${RABBITMQ_MAX_MESSAGE_SIZE-} ]] || echo "max_message_size = $RABBITMQ_MAX_MESSAGE_SIZE"
  [[ ${RABBITMQ_TLS-} != 1 ]] || cat <<CONF
listeners.ssl.1 = 127.0.0.2:$2
ssl_options.certfile = $1/ca.pem
ssl_options.keyfile = $1/key.pem
CONF
}

# The certificate is its own authority.
make_rabbitmq_certificate() { # FOLDER
  quietly "$1/openssl.log" openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=127.0.0.2 \
    -addext subjectAltName=IP:127.0.0.2 -keyout "$1/key.pem" -out "$1/ca.pem"
}

# rabbitmq_environment DIR PORT: sets the array environment for the server and its tools. The first variable has the
# server run in the process that is started, which then can be ended by its pid.
rabbitmq_environment() {
  local dir=$1 port=$2
  environment=(RUNNING_UNDER_SYSTEMD=true LANG=C.UTF-8 HOME="$dir/home" ERL_EPMD_PORT=$((port + 1)) ERL_EPMD_ADDRESS=127.0.0.1
    RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_DIST_PORT=$((port + 2)) RABBITMQ_CONF_ENV_FILE="$dir/env.conf"
    RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf" RABBITMQ_ADVANCED_CONFIG_FILE="$dir/none.config"
    RABBITMQ_ENABLED_PLUGINS_FILE="$dir/enabled_plugins" RABBITMQ_MNESIA_BASE="$dir/data" RABBITMQ_LOG_BASE="$dir/logs"
    RABBITMQ_PID_FILE="$dir/server.pid"
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none')
}

# in_rabbitmq_root ROOT: sets the array inside, which a command in ROOT starts with.
in_rabbitmq_root() {
  inside=()
  [[ -z $1 ]] || inside=(chroot "$1")
}

rabbitmq_tool() { # ROOT NAME: the path of a program in ROOT
  local path
  path=$(printf '%s\n' "$1"/usr/lib/rabbitmq/lib/*/sbin/"$2" | tail -n 1)
  echo "${path#"$1"}"
}

# command_rabbitmq ROOT DIR PORT: sets the array command. Erlang's port mapper would outlive the server: it is started
# here as a child that the kernel ends with its parent, however that ends.
command_rabbitmq() {
  local root=$1 dir=$2 port=$3 environment inside
  rabbitmq_environment "$dir" "$port"
  in_rabbitmq_root "$root"
  # shellcheck disable=SC2016 # the inner shell expands it
  command=(bash -c 'setpriv --pdeathsig KILL "${@:2:$1}" epmd & exec "${@:2}"' bash "$((${#inside[@]} + ${#environment[@]} + 1))"
    "${inside[@]}" env "${environment[@]}" "$(rabbitmq_tool "$root" rabbitmq-server)")
}

write_rabbitmq_ctl() { # ROOT DIR PORT
  local root=$1 dir=$2 environment inside
  rabbitmq_environment "$dir" "$3"
  in_rabbitmq_root "$root"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(printf '%q ' "${inside[@]}" env "${environment[@]}" "$(rabbitmq_tool "$root" rabbitmqctl)")" >"$root$dir/ctl"
  chmod +x "$root$dir/ctl"
}

# rabbitmq_speaks DIR PORT: a server that serves clients answers the protocol's header with a frame. It listens for TLS
# last.
rabbitmq_speaks() {
  local first=''
  ! grep -q ssl "$1/rabbitmq.conf" || (: <"/dev/tcp/127.0.0.2/$2") 2>/dev/null || return 1
  {
    exec 8<>"/dev/tcp/127.0.0.1/$2" || return 1
    printf 'AMQP\0\0\11\1' >&8
    IFS= read -r -N 1 -t 2 first <&8
    exec 8>&-
  } 2>/dev/null
  [[ $first == $'\1' ]]
}
