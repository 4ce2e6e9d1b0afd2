# shellcheck shell=bash disable=SC2034,SC2154 # names are shared with scripts/services
# Servers newer than the distribution's: packages of Debian's unstable suite, unpacked into a root of their own
# in the cache and run by chroot. Nothing is installed on the machine.

newer_root() { # NAME
  echo "$cache/roots/$1"
}

# dir_in_root NAME DIR: DIR as the server in the root NAME sees it.
dir_in_root() {
  local root; root=$(newer_root "$1")
  [[ $2 == "$root"/srv/* ]] || fail "$1: DIR must be below $root/srv"
  echo "${2#"$root"}"
}

newer_user=972 # the only user of a root besides root itself

# unpack_newer NAME USER PACKAGE...: makes the root NAME, once, with USER as the one who runs the server.
unpack_newer() {
  local name=$1 user=$2 root
  shift 2
  root=$(newer_root "$name")
  [[ ! -e $root ]] || return 0
  (( EUID == 0 )) || fail "$name: chroot needs root: run as root, start a Docker engine, or set the address"
  say "$name: unpacking $*"
  rm -rf "$root.apt" "$root.part"
  download_newer "$root.apt" "$@"
  unpack_debs "$root.apt" "$root.part"
  furnish_root "$root.part" "$user"
  rm -rf "$root.apt"
  mv "$root.part" "$root"
}

# download_newer STATE PACKAGE...: the machine's apt resolves and downloads with a state of its own, in which
# nothing is installed yet.
download_newer() {
  local state=$1 mirror
  shift
  mirror=$(debian_mirror)
  [[ -n $mirror ]] || fail "this machine's apt knows no Debian mirror: start a Docker engine, or set the addresses"
  mkdir -p "$state"/{lists,cache/archives}/partial
  : >"$state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror unstable main" >"$state/sources.list"
  newer_apt "$state" update
  newer_apt "$state" install --download-only base-files libc-bin dash coreutils "$@"
}

debian_mirror() {
  # shellcheck disable=SC2016 # apt expands it
  apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p
}

# A mirror may be a frozen copy, whose suite is past its date.
newer_apt() { # STATE ARGUMENT...
  local state=$1
  shift
  quietly "$state/log" apt-get -qq --yes \
    -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::State::lists="$state/lists" \
    -o Dir::Cache="$state/cache" -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o APT::Install-Recommends=false \
    -o APT::Sandbox::User=root "$@"
}

unpack_debs() { # STATE ROOT
  local deb
  mkdir -p "$2"
  for deb in "$1"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar --extract --directory "$2" --keep-directory-symlink \
      --exclude './usr/share/doc/*' --exclude './usr/share/man/*' --exclude './usr/share/locale/*'
  done
}

# furnish_root ROOT USER: what maintainer scripts would have made.
furnish_root() {
  local root=$1 user=$2 device
  mkdir -p "$root"/{tmp,dev,srv,etc}
  chmod 1777 "$root/tmp"
  for device in null zero urandom random; do cp --archive "/dev/$device" "$root/dev/"; done
  printf 'root:x:0:0::/root:/bin/sh\n%s:x:%d:%d::/srv:/bin/sh\n' "$user" $newer_user $newer_user >"$root/etc/passwd"
  printf 'root:x:0:\n%s:x:%d:\n' "$user" $newer_user >"$root/etc/group"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
  chroot "$root" /sbin/ldconfig
}
