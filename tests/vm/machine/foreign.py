# SPDX-License-Identifier: Apache-2.0
"""User space of another architecture: packages that are unpacked, and what a guest needs of their maintainer scripts.

Those scripts are programs of that architecture, which run here only where the kernel hands them to qemu-user (binfmt_misc).
"""

import shutil
from pathlib import Path

from . import architecture
from .debian import BuildError, bootstrap, run


def require_tools() -> None:
    guest = architecture.of_guest()
    for tool in (f"qemu-{guest.machine}", guest.compiler):
        if not shutil.which(tool):
            raise BuildError(f"build the lab: {tool} is missing: as root, run make deps ARCH={guest.name}")


def unpack(suite: str, target: Path, packages) -> None:
    require_tools()
    # Without the essential packages the variant would have nothing but PACKAGES and what they depend on.
    bootstrap(suite, target, "extract", packages, f"--architectures={architecture.of_guest().name}", "--include=?essential")


def configure(tree: Path) -> None:
    """What of the maintainer scripts a test node needs: accounts, and awk."""
    require_tools()
    for name in ("passwd", "group"):
        shutil.copy(tree / f"usr/share/base-passwd/{name}.master", tree / "etc" / name)
    run("make the accounts", *architecture.emulated(tree, "usr/bin/systemd-sysusers", f"--root={tree}"))
    if "messagebus:" not in (tree / "etc/passwd").read_text():  # bookworm's dbus has it made by its script
        for name, line in (("passwd", "messagebus:x:900:900::/nonexistent:/usr/sbin/nologin\n"), ("group", "messagebus:x:900:\n")):
            with open(tree / "etc" / name, "a") as accounts:
                accounts.write(line)
    (tree / "usr/bin/awk").symlink_to("mawk")

