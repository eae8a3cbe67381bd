#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the files beside this script, or remove them: install.sh [--uninstall]. DESTDIR is the root (default /).
# The configuration in /etc/headroom is kept in both cases.
set -eu
root=${DESTDIR:-}
here=$(cd "$(dirname "$0")" && pwd)
files=$here/files

fail() { echo "install.sh: $1" >&2; exit 1; }

# The programs are linked against glibc 2.36 (Debian 12).
check_glibc() {
  version=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
  oldest=$(printf '%s\n2.36\n' "${version:-0}" | sort -V | head -n1)
  [ "$oldest" = 2.36 ] || fail "glibc 2.36 or newer is required; this system has ${version:-no glibc}"
}

check_libraries() {
  for program in usr/sbin/headroomd usr/sbin/headroom-kube usr/bin/headroomctl; do
    missing=$(ldd "$files/$program" | awk '/not found/ {print $1}' | sort -u | tr '\n' ' ')
    [ -z "$missing" ] || fail "$program needs libraries that are not installed: $missing"
  done
}

reload_systemd() {
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
}

install_files() {
  (cd "$files" && find . -type f) | while read -r name; do
    name=${name#./}
    case $name in etc/*) [ ! -e "$root/$name" ] || continue ;; esac
    mkdir -p "$root/$(dirname "$name")"
    cp -p "$files/$name" "$root/$name.new" && mv "$root/$name.new" "$root/$name"
  done
  mkdir -p "$root/etc/headroom/headroom.yaml.d" "$root/etc/headroom/manifests"
  reload_systemd
  echo "headroom is installed. Next: headroomd --check-config && systemctl enable --now headroomd"
}

uninstall_files() {
  if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now headroomd.service headroom-kube.service || true
  fi
  (cd "$files" && find . -type f) | while read -r name; do
    case $name in ./etc/*) continue ;; esac
    rm -f "$root/${name#./}"
  done
  reload_systemd
  echo "headroom is removed. Its configuration is kept in $root/etc/headroom."
}

[ -d "$files" ] || fail "$files is missing"
case ${1:-} in
  '') check_glibc; check_libraries; install_files ;;
  --uninstall) uninstall_files ;;
  *) fail "usage: install.sh [--uninstall]" ;;
esac
