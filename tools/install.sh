#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install.sh [--uninstall | --purge]: install the files beside this script, or remove what it installed. DESTDIR is the root
# (default /). --uninstall keeps the record of evictions and the state of the programs; --purge removes them too. Neither removes
# what an operator wrote: a changed headroom.yaml, drop-ins, pod manifests.
set -uo pipefail
export LC_ALL=C
machine=@MACHINE@ # what the programs are built for
root=${DESTDIR:-}
root=${root%/}
here=$(cd "$(dirname "$0")" && pwd)
list=usr/lib/headroom/installed
# What the programs write.
runtime=(run/headroom run/headroom-kube run/private/headroom-kube)
state=(var/lib/headroom var/log/headroom var/lib/headroom-kube var/lib/private/headroom-kube)

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

check_machine() {
  local here_is
  here_is=$(uname -m)
  [[ $here_is == "$machine" ]] || fail "the programs are built for $machine; this machine is $here_is"
}

# The programs are linked against glibc 2.36 (Debian 12).
check_glibc() {
  local version oldest
  version=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
  oldest=$(printf '%s\n2.36\n' "${version:-0}" | sort -V | head -n1)
  [[ $oldest == 2.36 ]] || fail "glibc 2.36 or newer is required; this system has ${version:-no glibc}"
}

# Each program is started: the loader names a library that is missing.
check_programs() {
  local program message
  for program in usr/sbin/headroomd usr/sbin/headroom-kube usr/bin/headroomctl usr/libexec/headroom-commands; do
    message=$("$here/files/$program" --version 2>&1) || fail "$program does not run here: ${message%%$'\n'*}"
  done
}

check_root() {
  [[ -n $root ]] || ((EUID == 0)) || fail "run this as root"
}

# The package's own tools must install and remove its files.
check_owner() {
  [[ ! -e $root/usr/sbin/headroomd || -e $root/$list ]] ||
    fail "$root/usr/sbin/headroomd is there and was not installed by this script: remove it first, with the package manager if it is a package's"
}

systemd_runs() { [[ -z $root && -d /run/systemd/system ]]; }

install_files() {
  local message
  message=$("$here/install-tree" "$here/files" "$root" "$list" 2>&1) || fail "${message#headroom: }"
  ! systemd_runs || systemctl daemon-reload
  echo "headroom is installed. Next: headroomd --check-config && systemctl enable --now headroomd"
}

uninstall_files() {
  local kind first rest
  [[ -e $root/$list ]] || fail "nothing is removed: $root/$list is missing, so this script did not install headroom"
  [[ -w $root/usr && -w $root/usr/lib/headroom ]] || fail "nothing is removed: $root/usr cannot be written"
  if systemd_runs; then
    systemctl disable --now headroomd.service headroom-kube.service headroom-events.service >/dev/null 2>&1
    systemctl stop headroom-commands.socket 'headroom-commands@*.service' 2>/dev/null
    # After a crash it left limits changed, and no next daemon restores them.
    "$root/usr/sbin/headroomd" --restore
    systemctl stop headroom.slice 2>/dev/null
    systemctl reset-failed headroomd.service headroom-kube.service headroom-events.service 2>/dev/null
  fi
  local lines
  lines=$(sort -r "$root/$list") # the folders after what is in them
  while read -r kind first rest; do
    case $kind in
      config) [[ $(sha256sum 2>/dev/null < "$root/$rest") != "$first "* ]] || rm -f "$root/$rest" ;;
      file) rm -f "$root/$first" ;;
    esac
  done <<< "$lines"
  local written=("${runtime[@]}")
  [[ $1 != --purge ]] || written+=("${state[@]}")
  for first in "${written[@]}"; do rm -rf "$root/${first:?}"; done
  while read -r kind first rest; do
    [[ $kind != folder ]] || rmdir "$root/$first" 2>/dev/null
  done <<< "$lines"
  ! systemd_runs || systemctl daemon-reload
  local kept=()
  for first in etc/headroom "${state[@]}"; do
    [[ ! -e $root/$first ]] || kept+=("$root/$first")
  done
  echo "headroom is removed.${kept[*]:+ Kept: ${kept[*]}}"
}

[[ -d $here/files ]] || fail "$here/files is missing"
case ${1-} in
  '')
    check_machine
    check_glibc
    check_programs
    check_root
    check_owner
    install_files
    ;;
  --uninstall | --purge)
    check_root
    uninstall_files "$1"
    ;;
  *) fail "usage: install.sh [--uninstall | --purge]" ;;
esac
