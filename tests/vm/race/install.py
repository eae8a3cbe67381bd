# SPDX-License-Identifier: Apache-2.0
"""The peers in the guest: Debian's packages, unpacked and configured, and none running before its turn."""

from pathlib import Path

from machine import debs

from .peers import PACKAGES

IN_GUEST = "/var/tmp/peers"


def install(vm, kernel: str) -> dict[str, str]:
    """The version of each."""
    folder: Path = debs.of_debian(kernel, list(PACKAGES))
    for package in sorted(folder.glob("*.deb")):
        vm.put(package, f"{IN_GUEST}/{package.name}")
    # The lab's image has systemd-oomd masked; what is started here would watch while another is measured.
    vm.run(f"""set -e; rm -f /etc/systemd/system/systemd-oomd.*; systemctl daemon-reload
        printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d
        DEBIAN_FRONTEND=noninteractive apt-get -qqy --no-install-recommends install {IN_GUEST}/*.deb; rm -r {IN_GUEST}
        systemctl stop systemd-oomd.socket systemd-oomd.service""", timeout=300, check=True)
    listed = vm.run(f"dpkg-query -W -f '${{Package}} ${{Version}}\\n' {' '.join(PACKAGES)}", check=True).out
    return dict(line.split() for line in listed.splitlines())
