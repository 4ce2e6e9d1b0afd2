# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Server processes: DIR/pid records which process serves the data in DIR.

# process_start PID: when the kernel started it, which tells it from a later process with the same pid.
# Fails when there is none; a zombie counts as none.
process_start() {
  local stat fields
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -ra fields <<<"${stat##*) }" # the name before it may hold blanks
  [[ ${fields[0]} != Z ]] && echo "${fields[19]}"
}

# running_process DIR: the pid of the server of DIR; fails when it does not run.
running_process() {
  local pid start
  { read -r pid start <"$1/pid"; } 2>/dev/null || return 1
  [[ -n $start && $(process_start "$pid") == "$start" ]] && echo "$pid"
}

has_ended() { # DIR
  ! running_process "$1" >/dev/null
}

# launch NAME DIR PORT: starts the server, waits until it answers, prints its pid. The shell has what it starts in
# the background ignore SIGINT, which a server must not.
launch() {
  local name=$1 dir port=$3 pid command
  mkdir -p "$2"
  dir=$(cd "$2" && pwd)
  await 30 has_ended "$dir" || fail "$name: pid $(running_process "$dir") still runs on $dir"
  require_free_port "$name" "$port"
  "${name}_prepare" "$dir" "$port"
  "${name}_command" "$dir" "$port"
  setsid env --default-signal "${command[@]}" </dev/null >"$dir/log" 2>&1 9>&- &
  pid=$!
  echo "$pid $(process_start "$pid")" >"$dir/pid"
  await 120 answers_or_ended "$name" "$dir" "$port" || give_up "$name" "$dir" "$port"
  ! has_ended "$dir" || give_up "$name" "$dir" "$port"
  echo "$pid"
}

answers_or_ended() { # NAME DIR PORT
  has_ended "$2" || "${1}_answers" "$2" "$3"
}

give_up() { # NAME DIR PORT
  tail -n 20 "$2/log" >&2
  end_process "$1" "$2"
  fail "$1: does not answer on 127.0.0.1:$3; its log is $2/log"
}

# end_process NAME DIR: ends the recorded process, if it still is that process.
end_process() {
  local name=$1 dir=$2 signal=$1_stop_signal pid
  pid=$(running_process "$dir") || return 0
  kill -s "${!signal}" "$pid"
  await 30 has_ended "$dir" && return
  say "$name: pid $pid does not stop, killing it"
  kill -s KILL "$pid"
  await 10 has_ended "$dir"
}
