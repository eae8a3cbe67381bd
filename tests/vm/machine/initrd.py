# SPDX-License-Identifier: Apache-2.0
"""A small initrd for kernels that are not Debian's cloud kernels: those have the disk's driver and ext4 as modules."""

from pathlib import Path

from . import architecture
from .debian import BuildError, run

WANTED = ("crc32c_generic", "nvme", "ext4")  # ext4 asks for the first by its algorithm, which modules.dep does not say


def build(tree: Path, version: str, source: Path, scratch: Path, out: Path) -> None:
    """From the guest's TREE, whose modules are indexed."""
    init = scratch / "initrd-init"
    run("compile the initrd's init", architecture.of_guest().compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s",
        "-o", init, source)
    folder = tree / "usr/lib/modules" / version
    order = in_order(folder)
    files = {"init": init.read_bytes(), "modules": "".join(f"/{each.name.removesuffix('.xz')}\n" for each in order).encode()}
    for each in order:
        unpacked = scratch / each.name.removesuffix(".xz")
        if each.suffix == ".xz":
            run("unpack a module", "sh", "-c", f"xz -dc {each} > {unpacked}")
        else:
            unpacked.write_bytes(each.read_bytes())
        files[unpacked.name] = unpacked.read_bytes()
    out.write_bytes(archive(files))


def in_order(folder: Path) -> list[Path]:
    """WANTED with all they need, each after what it needs."""
    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        file, _, rest = line.partition(":")
        needs[file] = rest.split()
    order: list[str] = []
    for name in WANTED:
        found = [file for file in needs if Path(file).name.split(".")[0] == name]
        if not found:
            raise BuildError(f"make an initrd: no module {name} in {folder}")
        # modules.dep names the needed ones in the order in which they are unloaded.
        order += [file for file in [*reversed(needs[found[0]]), found[0]] if file not in order]
    return [folder / file for file in order]


def archive(files: dict[str, bytes]) -> bytes:
    """cpio(5) in the format newc, which the kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    packed = b""
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")], 1):
        fields = (number, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        packed += b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (name.encode() + b"\0", data):
            packed += part
            packed += b"\0" * (-len(packed) % 4)
    return packed
