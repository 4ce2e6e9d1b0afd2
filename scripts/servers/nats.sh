# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# NATS with JetStream, built from its Go module.
#
# Variations for a private server, from the environment of launch:
#   NATS_CONFIG  a file with more of its configuration, which it reads again on SIGHUP

nats_variable=POSTRIDER_TEST_NATS
nats_port=25422
nats_needs=()
nats_stop_signal=TERM

nats_address() { # PORT
  echo "nats://127.0.0.1:$1"
}

nats_install() {
  [[ ! -e $nats_binary ]] || return 0
  command -v go >/dev/null || fail "nats: no go command to build it with: install Go as go.mod names it, or set $nats_variable"
  say 'nats: building'
  quietly "$cache/nats.log" env GOBIN="$cache/nats.part" GOFLAGS= go install "github.com/nats-io/nats-server/v2@$nats_version"
  mv "$cache/nats.part/nats-server" "$nats_binary"
}

nats_prepare() { :; } # DIR PORT

nats_command() { # DIR PORT
  command=("$nats_binary" --addr 127.0.0.1 --port "$2" --jetstream --store_dir "$1/data")
  [[ -z ${NATS_CONFIG-} ]] || command+=(--config "$NATS_CONFIG")
}

nats_answers() { # DIR PORT
  local info=''
  { read -r -t 2 info <"/dev/tcp/127.0.0.1/$2"; } 2>/dev/null
  [[ $info == INFO*'"jetstream":true'* ]]
}

nats_version=v2.15.3
nats_binary=$cache/nats-server-$nats_version
