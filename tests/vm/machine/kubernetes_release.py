# SPDX-License-Identifier: Apache-2.0
"""Which Kubernetes the lab runs: the programs that KUBERNETES_BIN names, or Debian's 1.20 built from source.

KUBERNETES_BIN is a folder with a release's own programs: the unpacked server archive, or a flat folder. What a release
does not bring comes from ETCD_BIN, CONTAINERD_BIN and RUNC_BIN (folders too), or from Debian unstable's packages: a
current kubelet needs containerd 2.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import cache, kubernetes
from .debian import Archive, BuildError, require_tools

HERE = Path(__file__).resolve().parent
PLACES = ("kubernetes/server/bin", "server/bin", ".")  # of the programs under KUBERNETES_BIN
COMPONENTS = (*kubernetes.COMPONENTS, "kubectl")
SUITE = "sid"
OTHERS = {  # package → its folder, the variable that replaces it, and its programs
    "etcd-server": ("usr/bin", "ETCD_BIN", ("etcd",)),
    "containerd": ("usr/bin", "CONTAINERD_BIN", ("containerd", "containerd-shim-runc-v2", "ctr")),
    "runc": ("usr/sbin", "RUNC_BIN", ("runc",)),
}
OLDEST = (1, 27)  # of KUBERNETES_BIN: the first kubelet that takes the runtime's endpoint from its configuration


@dataclass(frozen=True)
class Release:
    version: str  # 1.36.2
    programs: list[Path]
    kernel: str  # of the guest whose C library the programs run with


def find(environment: Mapping[str, str] = os.environ) -> Release:
    if not environment.get("KUBERNETES_BIN"):
        folder = kubernetes.programs()
        return Release((folder.parent / "version").read_text().strip(), sorted(folder.iterdir()), "6.1")
    folder = _folder_of_components(Path(environment["KUBERNETES_BIN"]))
    version = version_of(folder / "kubelet")
    if numbers(version) < OLDEST:
        raise BuildError(f"KUBERNETES_BIN: Kubernetes {version} is older than {'.'.join(map(str, OLDEST))}")
    programs = [folder / name for name in COMPONENTS]
    for package in OTHERS:
        programs += _programs_of(package, environment)
    return Release(version, programs, "6.12")


def numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def version_of(kubelet: Path) -> str:
    try:
        said = subprocess.run([kubelet, "--version"], text=True, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"run {kubelet} --version: {error}") from error
    if found := re.fullmatch(r"Kubernetes v(\d+\.\d+\.\S+)\n", said):
        return found[1]
    raise BuildError(f"run {kubelet} --version: no version in {said.strip()[:100]!r}")


def _folder_of_components(given: Path) -> Path:
    for place in PLACES:
        if (given / place / COMPONENTS[0]).exists():
            return _with_all(given / place, COMPONENTS, "KUBERNETES_BIN")
    raise BuildError(f"KUBERNETES_BIN: no {COMPONENTS[0]} in {given} or its {PLACES[0]}")


def _programs_of(package: str, environment: Mapping[str, str]) -> list[Path]:
    place, variable, names = OTHERS[package]
    given = environment.get(variable)
    folder = _with_all(Path(given), names, variable) if given else _packages() / place
    return [folder / name for name in names]


def _with_all(folder: Path, names: tuple[str, ...], variable: str) -> Path:
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise BuildError(f"{variable}: no {' and no '.join(missing)} in {folder}")
    return folder


def _packages() -> Path:
    recipe = cache.digest(SUITE, sorted(OTHERS), HERE / "debian.py")
    return cache.obtain("kubernetes-others", recipe, _unpack) / "tree"


def _unpack(out: Path) -> None:
    require_tools()
    archive = Archive(SUITE, out / "apt")
    for package in OTHERS:
        archive.unpack(package, out / "tree")
