#!/usr/bin/env bash
# Installs what requirements.txt names into the cache, once, and prints where: the folder for PYTHONPATH.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POSTRIDER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/postrider}
wanted=$cache/python-$(cat "$here/requirements.txt" <(python3 --version) | cksum | cut -d ' ' -f 1)

mkdir -p "$cache"
exec 9>"$cache/python.lock"
flock 9
if [[ ! -e $wanted ]]; then
  rm -rf "$wanted.part"
  python3 -m pip install --quiet --disable-pip-version-check --target "$wanted.part" --requirement "$here/requirements.txt" >&2
  mv "$wanted.part" "$wanted"
fi
echo "$wanted"
