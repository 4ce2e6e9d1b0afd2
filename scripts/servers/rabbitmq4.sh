# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# RabbitMQ 4.3 or newer, chrooted to a root of newer Debian packages. See rabbitmq.sh for its ports and variations.

rabbitmq4_variable=POSTRIDER_TEST_RABBITMQ4
rabbitmq4_port=25475
rabbitmq4_needs=(openssl=openssl)
rabbitmq4_stop_signal=TERM
rabbitmq4_home=$(newer_root rabbitmq4)/srv

rabbitmq4_address() { # PORT
  rabbitmq_address "$1"
}

rabbitmq4_install() {
  unpack_newer rabbitmq4 rabbitmq rabbitmq-server socat gawk
}

rabbitmq4_prepare() { # DIR PORT
  prepare_rabbitmq "$(newer_root rabbitmq4)" "$(dir_in_root rabbitmq4 "$1")" "$2"
}

rabbitmq4_command() { # DIR PORT
  command_rabbitmq "$(newer_root rabbitmq4)" "$(dir_in_root rabbitmq4 "$1")" "$2"
}

rabbitmq4_answers() { # DIR PORT
  rabbitmq_speaks "$1" "$2"
}
