# SPDX-License-Identifier: Apache-2.0
"""Debian packages a lab's image has not, with those they depend on, fetched once for each image."""

import shutil
from pathlib import Path

from . import cache, image
from .debian import Archive, run


def missing(kernel: str, ours: list[Path], besides: list[str]) -> Path:
    """A folder in the cache: what apt itself would take from the archive to install OURS there, and Debian's BESIDES."""
    depends = [run(f"read {each.name}", "dpkg-deb", "-f", each, "Depends") for each in ours]
    return _obtain(kernel, "debs", [*depends, *besides], [*(each.resolve() for each in ours), *besides])


def of_debian(kernel: str, names: list[str]) -> Path:
    """A folder in the cache: Debian's own packages NAMES, and what they need that the image has not."""
    return _obtain(kernel, "peers", names, names)


def _obtain(kernel: str, label: str, recipe: list[str], wanted: list) -> Path:
    built, userspace = image.obtain(kernel), image.FLAVOURS[kernel].userspace
    return cache.obtain(f"{label}-{userspace}", cache.digest(userspace, image.PACKAGES, *recipe, Path(__file__)),
                        lambda out: _fetch(built.root, userspace, wanted, out))


def _fetch(root: Path, suite: str, wanted: list, out: Path) -> None:
    archive = Archive(suite, out / "apt")
    run("read what the image has", "debugfs", "-R", f"dump /var/lib/dpkg/status {out}/apt/status", root)
    run(f"fetch what {suite} lacks", "apt-get", "-qy", *archive.options, "--no-install-recommends", "--download-only",
        "install", *wanted)
    for package in (out / "apt/cache/archives").glob("*.deb"):
        shutil.move(package, out)
    shutil.rmtree(out / "apt")
