# SPDX-License-Identifier: Apache-2.0
"""The shared libraries that a program loads, of this machine's architecture or of another one."""

import os
import re
import subprocess
from pathlib import Path

# Where the libraries of another architecture are unpacked (make sysroot), or / for multi-arch packages.
SYSROOT = Path(os.environ.get("SYSROOT") or "/")
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}  # readelf's name → the kernel's


class LibraryError(Exception):
    """Names the library that is missing, or the tool that failed."""


def _output_of(*command: str) -> str:
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        raise LibraryError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def machine_of(program: Path) -> str:
    """The kernel's name of what a program is for."""
    header = _output_of("readelf", "--file-header", str(program))
    name = re.search(r"^ +Machine: +(.+)$", header, re.M)
    return MACHINES.get(name[1].strip(), name[1].strip()) if name else "unknown"


def is_native(program: Path) -> bool:
    return machine_of(program) == os.uname().machine


def root_of(program: Path) -> Path:
    """Below which directory the libraries and the packages of a program are."""
    return Path("/") if is_native(program) else SYSROOT


def libraries(program: Path) -> dict[str, Path]:
    """Path without the leading slash → file here: the loader and every library, under the names by which they are loaded."""
    if "no dynamic section" in _output_of("readelf", "--dynamic", str(program)):
        return {}
    return _by_loader(program) if is_native(program) else _by_search(program, SYSROOT)


def _by_loader(program: Path) -> dict[str, Path]:
    found = {}
    for line in _output_of("ldd", str(program)).splitlines():
        words = line.split()
        if "not" in words and "found" in words:
            raise LibraryError(f"{program}: {words[0]} is not installed here")
        path = next((word for word in words if word.startswith("/")), None)  # the vdso has none
        if path:
            found[path.lstrip("/")] = Path(path)
    return found


def _by_search(program: Path, root: Path) -> dict[str, Path]:
    """As the loader of that architecture would: it cannot run here."""
    folders = [f"{start}/{machine_of(program)}-linux-gnu" for start in ("lib", "usr/lib")]
    found: dict[str, Path] = {}
    waiting = [program]
    while waiting:
        file = waiting.pop()
        dynamic = _output_of("readelf", "--dynamic", "--program-headers", "--wide", str(file))
        loader = re.findall(r"Requesting program interpreter: /(\S+?)\]", dynamic)
        for name in [*loader, *re.findall(r"\(NEEDED\).*\[(\S+)\]", dynamic)]:
            if any(Path(path).name == Path(name).name for path in found):
                continue
            places = [name] if "/" in name else [f"{folder}/{name}" for folder in folders]
            path = next((place for place in places if (root / place).exists()), None)
            if not path:
                raise LibraryError(f"{file}: {name} is not below {root}")
            found[path] = root / path
            waiting.append(root / path)
    return found
