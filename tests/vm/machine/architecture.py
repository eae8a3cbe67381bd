# SPDX-License-Identifier: Apache-2.0
"""The architecture of the guest: ARCH of the environment, as make has it, or this machine's.

A guest of another architecture than this machine's is made without running its programs as if they were this machine's: its
packages are unpacked and not configured, and the few programs of it that must run do so under qemu-user.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .debian import BuildError

NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # the kernel's → Debian's


@dataclass(frozen=True)
class Architecture:
    name: str  # Debian's
    machine: str  # the kernel's, and qemu's
    loader: str
    emulator_package: str
    hardware: tuple[str, ...]
    kernel_words: str

    @property
    def gnu(self) -> str:
        return f"{self.machine}-linux-gnu"

    @property
    def emulator(self) -> str:
        return f"qemu-system-{self.machine}"

    @property
    def native(self) -> bool:
        return self.name == host()

    @property
    def label(self) -> str:
        """What the cache's folders are called after: those of this machine's own have no suffix."""
        return "" if self.native else f"-{self.name}"

    @property
    def compiler(self) -> str:
        return "gcc" if self.native else f"{self.gnu}-gcc"


AMD64 = Architecture(
    "amd64", "x86_64", "lib64/ld-linux-x86-64.so.2", "qemu-system-x86",
    # No legacy controllers: probing an absent disk or keyboard costs the kernel a second, emulated.
    # la57: five-level page tables cost emulated walks. svm: udev would load kvm.
    ("-machine", "q35,sata=off,smbus=off,i8042=off", "-cpu", "max,-la57,-erms,-fsrm,-svm"),
    "console=ttyS0 tsc=reliable no_timer_check")
ARM64 = Architecture(
    "arm64", "aarch64", "lib/ld-linux-aarch64.so.1", "qemu-system-arm",
    # Signed pointers by an algorithm of qemu's own: the architecture's one takes most of the time of a guest.
    ("-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"),
    "console=ttyAMA0")
ARCHITECTURES = {each.name: each for each in (AMD64, ARM64)}


def host() -> str:
    return NAMES.get(platform.machine(), platform.machine())


def named(name: str) -> Architecture:
    debian = NAMES.get(name, name)
    if debian not in ARCHITECTURES:
        raise BuildError(f"build the lab: no architecture {debian}; there are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[debian]


def of_guest() -> Architecture:
    return named(os.environ.get("ARCH") or host())


def of_host() -> Architecture:
    return named(host())


def emulated(tree: Path, program: str, *arguments) -> list:
    """The command that runs a PROGRAM of a guest's TREE here, under qemu-user."""
    machine, file = of_guest().machine, (tree / program).resolve()
    return [f"qemu-{machine}", "-L", tree, "-0", Path(program).name, file, *arguments]
