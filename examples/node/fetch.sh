#!/usr/bin/env bash
# Installs what package.json names into the cache, once, and prints where: the folder for NODE_PATH.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POSTRIDER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/postrider}
wanted=$cache/node-$(cksum <"$here/package.json" | cut -d ' ' -f 1)

mkdir -p "$cache"
exec 9>"$cache/node.lock"
flock 9
if [[ ! -e $wanted/node_modules ]]; then
  rm -rf "$wanted.part"
  mkdir "$wanted.part"
  cp "$here/package.json" "$wanted.part"
  npm install --prefix "$wanted.part" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
  rm -rf "$wanted"
  mv "$wanted.part" "$wanted"
fi
echo "$wanted/node_modules"
