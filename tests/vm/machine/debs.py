# SPDX-License-Identifier: Apache-2.0
"""The Debian packages that ours depend on and a lab's image has not, fetched once for each image."""

import shutil
from pathlib import Path

from . import cache, image
from .debian import Archive, run


def missing(kernel: str, ours: list[Path]) -> Path:
    """A folder of them, in the cache: what apt itself would take from the archive to install OURS there."""
    built, userspace = image.obtain(kernel), image.FLAVOURS[kernel].userspace
    depends = [run(f"read {each.name}", "dpkg-deb", "-f", each, "Depends") for each in ours]
    recipe = cache.digest(userspace, image.PACKAGES, *depends, Path(__file__))
    return cache.obtain(f"debs-{userspace}", recipe, lambda out: _fetch(built.root, userspace, ours, out))


def _fetch(root: Path, suite: str, ours: list[Path], out: Path) -> None:
    archive = Archive(suite, out / "apt")
    run("read what the image has", "debugfs", "-R", f"dump /var/lib/dpkg/status {out}/apt/status", root)
    run(f"fetch what {suite} lacks", "apt-get", "-qy", *archive.options, "--no-install-recommends", "--download-only",
        "install", *(each.resolve() for each in ours))
    for package in (out / "apt/cache/archives").glob("*.deb"):
        shutil.move(package, out)
    shutil.rmtree(out / "apt")
