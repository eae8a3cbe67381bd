# SPDX-License-Identifier: Apache-2.0
"""What goes into the guest: programs with the libraries they need, and disks."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from .qemu import mebibytes

sys.path.append(str(Path(__file__).resolve().parents[3] / "tools"))

import elf_libraries  # noqa: E402

PREFIX = "/opt/headroom"  # where the guest unpacks the payload

# glibc's own parts must come from the guest: they belong to its loader, and glibc runs older programs unchanged.
GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libresolv.so",
         "libutil.so", "libanl.so", "libnss_", "libnsl.so", "libBrokenLocale.so", "libthread_db.so", "libmvec.so")


def bundle(binaries, dest: Path, prefix: str = PREFIX) -> Path:
    """Copy programs to DEST/bin and their libraries to DEST/lib.

    DEST is then a payload: in the guest the programs are /opt/headroom/bin/NAME, which is on the agent's PATH. They
    find their libraries by an RPATH: an environment variable would reach the guest's own programs that they start,
    and those must have the guest's libraries.
    """
    dest = Path(dest)
    for folder in ("bin", "lib"):
        (dest / folder).mkdir(parents=True, exist_ok=True)
    for binary in map(Path, binaries):
        program, needed = dest / "bin" / binary.name, libraries(binary)
        _copy(binary, program)
        for library in needed:
            _copy(library, dest / "lib" / library.name)
        if needed:  # RPATH and not RUNPATH: it counts for the libraries' own libraries as well
            subprocess.run(["patchelf", "--force-rpath", "--set-rpath", f"{prefix}/lib", str(program)], check=True)
    return dest


def libraries(binary: Path) -> list[Path]:
    """The shared libraries of a program by the names it asks for, without glibc's. None for a static one."""
    return [file for name, file in elf_libraries.libraries(binary).items() if not Path(name).name.startswith(GLIBC)]


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    shutil.copy(source, target)


def tar_disk(folder: Path, file: Path) -> Path:
    """FOLDER as a raw tar: the guest reads the disk itself as the archive."""
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, arcname=".", filter=_root_owned)
    with open(file, "r+b") as disk:  # whole sectors, or the guest misses the end
        disk.truncate((file.stat().st_size + 4095) // 4096 * 4096)
    return file


def _root_owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def swap_disk(size: str, file: Path) -> Path:
    return _formatted(size, file, ["mkswap", "-q", str(file)])


def ext4_disk(size: str, file: Path) -> Path:
    return _formatted(size, file, ["mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1", "-m0", str(file)])


def _formatted(size: str, file: Path, command: list[str]) -> Path:
    file.touch(mode=0o600)
    os.truncate(file, mebibytes(size) << 20)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    return file
