# SPDX-License-Identifier: Apache-2.0
"""Every file of a guest, to compare what is there before a program is installed and after it is removed."""

# What the installer, systemd and the kernel write by themselves, whatever is installed.
NOT_COMPARED = (
    "/proc", "/sys", "/dev", "/tmp",
    "/opt/headroom",  # the payload
    "/run/systemd", "/run/udev", "/run/log", "/var/lib/systemd", "/var/log/journal",
    "/var/lib/dpkg", "/var/log/dpkg.log", "/var/cache/ldconfig", "/etc/ld.so.cache", "/var/cache/man",
)
# For the first unit with DynamicUser=; what is in them is compared.
MADE_BY_SYSTEMD = ("/run/private", "/var/lib/private")


def files(vm) -> dict[str, str]:
    """Path → type, mode, owner and target; of a regular file also its size and the time of its last change."""
    pruned = " -o ".join(f"-path {path}" for path in NOT_COMPARED)
    script = rf"find / \( {pruned} \) -prune -o -type f -printf '%p\tf %m %u %g %s %T@\n' -o -printf '%p\t%y %m %u %g %l\n'"
    listed = (line.split("\t", 1) for line in vm.run(script, timeout=60, check=True).out.splitlines())
    return {path: facts for path, facts in listed if path not in MADE_BY_SYSTEMD}


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    gone = [f"removed: {path}" for path in sorted(before.keys() - after.keys())]
    left = [f"left: {path}" for path in sorted(after.keys() - before.keys())]
    changed = [f"changed: {path}: {before[path]} → {after[path]}" for path in sorted(before.keys() & after.keys())
               if before[path] != after[path]]
    return gone + left + changed
