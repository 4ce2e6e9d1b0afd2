# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# What the scripts need of the machine: messages, locks, packages, waiting, ports.

say() {
  echo "services: $*" >&2
}

fail() {
  say "$*"
  exit 1
}

# quietly LOG COMMAND...: runs COMMAND with its output in LOG, and shows the end of that when it fails.
quietly() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 && return
  tail -n 20 "$log" >&2
  fail "failed: $*"
}

# lock NAME: held until this process ends; a second run waits for it.
lock() {
  exec 9>"$cache/$1.lock"
  flock --timeout 2 9 && return
  say "waiting for another run of services"
  flock 9
}

# await SECONDS COMMAND...: repeats COMMAND until it succeeds; fails when SECONDS have passed.
await() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    (( SECONDS < deadline )) || return 1
    sleep 0.1
  done
}

port_is_free() { # PORT
  ! (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

require_free_port() { # NAME PORT
  await 10 port_is_free "$2" || fail "$1: something else listens on 127.0.0.1:$2; end it or choose another port"
}

# install_packages NAME...: what the servers need and the machine lacks, in one go.
install_packages() {
  local packages
  mapfile -t packages < <(missing_packages "$@" | sort --unique)
  (( ${#packages[@]} )) || return 0
  say "installing ${packages[*]}"
  command -v apt-get >/dev/null || fail "this machine has no apt-get: install ${packages[*]}, start a Docker engine, or set the addresses"
  (( EUID == 0 )) || fail "installing ${packages[*]} needs root: run 'scripts/services install' as root once"
  apt_get update
  without_service_start apt_get install --no-install-recommends "${packages[@]}"
}

missing_packages() { # NAME...
  local name needs need
  for name in "$@"; do
    needs="${name}_needs[@]"
    for need in "${!needs}"; do
      is_present "${need%%=*}" || echo "${need#*=}"
    done
  done
}

is_present() { # COMMAND, a name or a path with wildcards
  command -v "$1" >/dev/null || compgen -G "$1" >/dev/null
}

apt_get() {
  quietly "$cache/apt.log" env DEBIAN_FRONTEND=noninteractive apt-get -qq --yes -o DPkg::Lock::Timeout=600 "$@"
}

# Debian starts a server when its package is installed, on the port that others expect theirs on. Its policy
# file is how to say no.
without_service_start() { # COMMAND...
  local policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  "$@"
}
