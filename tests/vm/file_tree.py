# SPDX-License-Identifier: Apache-2.0
"""Every file of a guest, to compare what is there before a program is installed and after it is removed."""

# What the installer, systemd and the kernel write by themselves, whatever is installed.
NOT_COMPARED = (
    "/proc", "/sys", "/dev", "/tmp",
    "/opt/headroom",  # the payload
    "/run/systemd", "/run/udev", "/run/log", "/var/lib/systemd", "/var/log/journal",
    "/var/lib/dpkg", "/var/log/dpkg.log", "/var/cache/ldconfig", "/etc/ld.so.cache", "/var/cache/man",
)


def files(vm) -> dict[str, str]:
    """Path → type, mode, owner and target; of a regular file also its size and checksum."""
    pruned = " -o ".join(f"-path {path}" for path in NOT_COMPARED)
    script = rf"""find / \( {pruned} \) -prune -o -printf '%p\t%y %m %u %g %l\n'
        find / \( {pruned} \) -prune -o -type f -print0 | xargs -0 cksum | sed -E 's,^([0-9]+ [0-9]+) (.*),\2\t\1,'"""
    found: dict[str, str] = {}
    for line in vm.run(script, timeout=120, check=True).out.splitlines():
        path, _, facts = line.partition("\t")
        found[path] = f"{found.get(path, '')} {facts}".strip()
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    gone = [f"removed: {path}" for path in sorted(before.keys() - after.keys())]
    left = [f"left: {path}" for path in sorted(after.keys() - before.keys())]
    changed = [f"changed: {path}: {before[path]} → {after[path]}" for path in sorted(before.keys() & after.keys())
               if before[path] != after[path]]
    return gone + left + changed
