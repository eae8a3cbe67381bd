# SPDX-License-Identifier: Apache-2.0
"""The guest's disk and kernel: a stock Debian user space, a stock Debian cloud kernel, and our agent."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import architecture, cache, foreign, initrd, vmlinux
from .debian import Archive, BuildError, bootstrap, require_tools, run

HERE = Path(__file__).resolve().parent
GUEST = HERE.parent / "guest"


@dataclass(frozen=True)
class Flavour:
    """Which suite gives the user space and which the kernel."""
    userspace: str
    kernel: str
    package: str = "linux-image-cloud-{architecture}"
    architectures: tuple[str, ...] = ("amd64", "arm64")

    def kernel_package(self) -> str:
        return self.package.format(architecture=architecture.of_guest().name)


FLAVOURS = {
    "6.1": Flavour("bookworm", "bookworm"),
    "6.12": Flavour("trixie", "trixie"),
    "newest": Flavour("trixie", "sid"),
    "sid": Flavour("sid", "sid"),
    "6.12-16k": Flavour("trixie", "trixie", "linux-image-{architecture}-16k", ("arm64",)),  # pages of 16 KiB
}

PACKAGES = ("systemd", "systemd-sysv", "dbus", "udev", "kmod", "iproute2", "procps", "util-linux", "libbpf1",
            "bpftool", "curl", "e2fsprogs")
IMAGE_SIZE = "2G"  # sparse: about 400 MB are on the disk
MACHINE_ID = "68656164726f6f6d2d6c61622d766d31"  # fixed: an empty one makes systemd run its first boot


@dataclass(frozen=True)
class Image:
    root: Path
    kernel: Path
    kernel_version: str
    initrd: Path | None


def obtain(flavour: str, refresh: bool = False) -> Image:
    if flavour not in FLAVOURS:
        raise BuildError(f"build an image: no kernel {flavour!r}; there are {', '.join(FLAVOURS)}")
    guest = architecture.of_guest()
    if guest.name not in FLAVOURS[flavour].architectures:
        raise BuildError(f"build an image: the kernel {flavour} is for {', '.join(FLAVOURS[flavour].architectures)}, not for {guest.name}")
    recipe = cache.digest(flavour, FLAVOURS[flavour], PACKAGES, GUEST, guest,
                          *(HERE / f"{name}.py" for name in ("vmlinux", "debian", "foreign", "initrd", "image")))
    folder = cache.obtain(f"{flavour}{guest.label}", recipe, lambda out: _build(FLAVOURS[flavour], out, refresh), refresh)
    elf, early = folder / "vmlinux", folder / "initrd"
    return Image(root=folder / "root.img", kernel=elf if elf.exists() else folder / "vmlinuz",
                 kernel_version=(folder / "kernel-version").read_text().strip(), initrd=early if early.exists() else None)


def _build(flavour: Flavour, out: Path, refresh: bool) -> None:
    require_tools()
    guest = architecture.of_guest()
    userspace = cache.obtain(f"rootfs-{flavour.userspace}{guest.label}",
                             cache.digest(flavour.userspace, PACKAGES, HERE / "debian.py"),
                             lambda folder: _build_userspace(flavour.userspace, folder), refresh)
    tree = out / "tree"
    with cache.phase(f"kernel from {flavour.kernel}"):
        version = _fetch_kernel(flavour, out)
    with cache.phase(f"tree with {version}"):
        tree.mkdir()
        run("unpack the user space", "tar", "-C", tree, "--numeric-owner", "-xpf", userspace / "root.tar")
        if not guest.native:
            foreign.configure(tree)
        _install_kernel(out / "kernel", version, tree)
        _install_guest(tree)
        if "cloud" not in flavour.package:
            initrd.build(tree, version, GUEST / "initrd.c", out / "kernel", out / "initrd")
    with cache.phase("root.img"):
        _make_filesystem(tree, out / "root.img")
    for leftover in ("tree", "kernel", "apt"):
        shutil.rmtree(out / leftover)
    (out / "kernel-version").write_text(version + "\n")


def _build_userspace(suite: str, out: Path) -> None:
    with cache.phase(f"user space from {suite}"):
        if architecture.of_guest().native:
            # sid's list of packages expires in days; this machine's clock may be ahead of its mirror.
            patience = ['--aptopt=Acquire::Check-Valid-Until "false"'] if suite == "sid" else []
            bootstrap(suite, out / "root.tar", "minbase", PACKAGES, *patience)
        else:
            foreign.unpack(suite, out / "root.tar", PACKAGES)


def _fetch_kernel(flavour: Flavour, out: Path) -> str:
    """Follow the meta package to today's ABI, unpack it and the parts it is split into (sid), keep the image."""
    guest, suite, meta_package = architecture.of_guest(), flavour.kernel, flavour.kernel_package()
    archive = Archive(suite, out / "apt", guest.name)
    todo, seen = [meta_package], set()
    while todo:
        package = todo.pop()
        seen.add(package)
        if package != meta_package:
            archive.unpack(package, out / "kernel")
        todo += [name for name in archive.depends(package)
                 if re.match(r"linux-(image|binary|modules)-", name) and name not in seen]
    version = _version(out / "kernel", suite)
    places = (out / "kernel/boot" / f"vmlinuz-{version}", out / "kernel/usr/lib/modules" / version / "vmlinuz")
    image = next((place for place in places if place.exists()), None)  # the second is sid's since its split
    if not image:
        raise BuildError(f"fetch a kernel from {suite}: no image of {version} in {sorted(seen)}")
    shutil.move(image, out / "vmlinuz")
    if guest is architecture.AMD64:
        vmlinux.extract(out / "vmlinuz", out / "vmlinux")
    return version


def _version(unpacked: Path, suite: str) -> str:
    found = {folder.name for folder in unpacked.glob("**/lib/modules/*") if folder.is_dir()}
    if len(found) != 1:
        raise BuildError(f"fetch a kernel from {suite}: expected one set of modules, got {sorted(found)}")
    return found.pop()


def _install_kernel(unpacked: Path, version: str, tree: Path) -> None:
    for modules in (unpacked / "lib/modules", unpacked / "usr/lib/modules"):
        if modules.is_dir():
            shutil.copytree(modules, tree / "usr/lib/modules", symlinks=True, dirs_exist_ok=True)
    # The guest's own depmod: the builder's, run with -b, failed without a word on a newer kernel's modules.
    if architecture.of_guest().native:
        run("index the modules", "chroot", tree, "depmod", version)
    else:
        run("index the modules", *architecture.emulated(tree, "usr/sbin/depmod", "-b", tree, version))


def _install_guest(tree: Path) -> None:
    """The agent, the units that start it, and masks for what a test node does not need."""
    (tree / "usr/local/sbin").mkdir(parents=True, exist_ok=True)
    run("compile the agent", architecture.of_guest().compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s",
        "-o", tree / "usr/local/sbin/lab-agent", GUEST / "agent.c")
    shutil.copytree(GUEST / "overlay", tree, dirs_exist_ok=True)
    units = tree / "etc/systemd/system"
    _mask_generators(tree)
    for line in (GUEST / "masked").read_text().splitlines():
        unit = line.split("#")[0].strip()
        if unit:
            (units / unit).unlink(missing_ok=True)
            (units / unit).symlink_to("/dev/null")
    wants = units / "sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lab-agent.service").symlink_to("../lab-agent.service")
    (units / "default.target").symlink_to("/usr/lib/systemd/system/multi-user.target")
    (tree / "etc/machine-id").write_text(MACHINE_ID + "\n")
    (tree / "etc/hostname").write_text("lab\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost lab\n")
    (tree / "etc/resolv.conf").write_text("")
    (tree / "etc/fstab").write_text("")
    # An older stamp than /usr makes systemd run its "update is done" services at each boot.
    for stamped in ("etc/.updated", "var/.updated"):
        (tree / stamped).touch()
        os.utime(tree / stamped, (2**31 - 1, 2**31 - 1))


def _mask_generators(tree: Path) -> None:
    """Units are written by hand here; a dozen generators forked before the first unit cost half a second."""
    masks = tree / "etc/systemd/system-generators"
    masks.mkdir(parents=True, exist_ok=True)
    for generator in (tree / "usr/lib/systemd/system-generators").iterdir():
        (masks / generator.name).symlink_to("/dev/null")


def _make_filesystem(tree: Path, image: Path) -> None:
    """No journal and no checksums: the disk is written through a snapshot that dies with the VM."""
    run("make the root filesystem", "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum,^huge_file",
        "-E", "lazy_itable_init=1,root_owner=0:0", "-m0", "-L", "lab", "-d", tree, image, IMAGE_SIZE)
