# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Where a Docker engine answers, deploy/compose.yaml serves. Its services have the names of scripts/servers.

docker_answers() {
  command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1
}

compose() {
  docker compose --file "$scripts/../deploy/compose.yaml" "$@"
}
