# SPDX-License-Identifier: Apache-2.0
"""kubectl from Debian's archive, beside the system and not on it: trixie's, for bookworm's knows no components."""

import subprocess
from pathlib import Path

from . import cache
from .debian import Archive, BuildError, require_tools

HERE = Path(__file__).resolve().parent
SUITE, PACKAGE = "trixie", "kubectl"


def program() -> Path:
    recipe = cache.digest(SUITE, PACKAGE, HERE / "debian.py")
    return cache.obtain("kubectl", recipe, _build) / "tree/usr/bin/kubectl"


def _build(out: Path) -> None:
    require_tools()
    with cache.phase(f"kubectl from {SUITE}"):
        Archive(SUITE, out / "apt").unpack(PACKAGE, out / "tree")
    if not (out / "tree/usr/bin/kubectl").exists():
        raise BuildError("extract kubectl: the package has none")


def kubectl(*words, data: str | None = None) -> subprocess.CompletedProcess:
    """Whatever kubeconfig this machine has is not looked at."""
    return subprocess.run([str(program()), "--kubeconfig=/dev/null", *map(str, words)], input=data, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
