# SPDX-License-Identifier: Apache-2.0
"""The emulator: trixie's qemu beside the system, and the command line of a machine.

Bookworm's qemu 7.2 emulates cmpxchg16b wrongly: guests die in a double fault under load.
"""

from dataclasses import dataclass, field
from pathlib import Path

from . import cache
from .debian import BuildError, bootstrap, require_tools

HERE = Path(__file__).resolve().parent
SUITE = "trixie"
PACKAGES = ("qemu-system-x86", "libc6", "libc-bin")

KERNEL_ARGUMENTS = (
    "console=ttyS0 root=/dev/nvme0n1 rw rootfstype=ext4 psi=1 quiet nokaslr tsc=reliable no_timer_check "
    "random.trust_cpu=on audit=0 systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all panic=-1 net.ifnames=0 "
    "mitigations=off"
)


@dataclass
class Disk:
    """A raw file the guest sees as /dev/disk/by-id/virtio-SERIAL."""
    file: Path
    serial: str
    iops: int = 0  # operations a second it answers; 0: as many as this machine can


@dataclass
class Machine:
    """The shape of a VM."""
    memory: str = "2G"
    cpus: int = 2
    topology: str = ""  # "sockets=2,cores=2,threads=2"
    numa: int = 1  # nodes; memory is shared out evenly, CPUs by socket
    cmdline: str = ""  # appended last: the kernel takes the last of two contradicting words
    device_node: int | None = None  # a PCI device hangs on this NUMA node
    counted: bool = False  # time is the number of instructions, one a nanosecond: slow, and the same in every run
    disks: list[Disk] = field(default_factory=list)


def mebibytes(size: str) -> int:
    units = {"M": 1, "G": 1024}
    return int(size[:-1]) * units[size[-1]]


def toolchain(refresh: bool = False) -> Path:
    recipe = cache.digest(SUITE, PACKAGES, HERE / "debian.py")
    return cache.obtain("qemu", recipe, _build, refresh)


def _build(out: Path) -> None:
    require_tools()
    with cache.phase(f"qemu from {SUITE}"):
        bootstrap(SUITE, out / "tree", "extract", PACKAGES)
    if not (out / "tree/usr/bin/qemu-system-x86_64").exists():
        raise BuildError("extract qemu: the package has no qemu-system-x86_64")


def program(tools: Path) -> list[str]:
    """It runs against its own C library, which is newer than the system's, through its own loader."""
    usr = tools / "tree/usr"
    libraries = usr / "lib/x86_64-linux-gnu"
    return [str(usr / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(libraries),
            str(usr / "bin/qemu-system-x86_64"), "-L", str(usr / "share/qemu"), "-L", str(usr / "share/seabios")]


def environment(tools: Path) -> dict[str, str]:
    modules = tools / "tree/usr/lib/x86_64-linux-gnu/qemu"
    return {"QEMU_MODULE_DIR": str(modules), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def clock(machine: Machine) -> list[str]:
    if machine.counted:
        return ["-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,sleep=off"]
    return ["-accel", "tcg,thread=multi,tb-size=512"]


def arguments(machine: Machine, kernel: Path, root: Path, run_dir: Path) -> list[str]:
    words = [
        # No legacy controllers: probing an absent disk or keyboard costs the kernel a second, emulated.
        "-machine", "q35,sata=off,smbus=off,i8042=off", *clock(machine),
        # la57: five-level page tables cost emulated walks. svm: udev would load kvm.
        "-cpu", "max,-la57,-erms,-fsrm,-svm", "-m", str(mebibytes(machine.memory)),
        "-smp", ",".join(filter(None, [str(machine.cpus), machine.topology])),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(kernel), "-append", f"{KERNEL_ARGUMENTS} {machine.cmdline}".strip(),
        "-serial", f"file:{run_dir}/console.log",
        # A virtio port takes a megabyte in 0.1 s; an emulated UART took 13 s for it.
        "-chardev", f"socket,id=agent,path={run_dir}/agent.sock,server=on,wait=off",
        "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,nr=1,name=agent",
        # NVMe is built into the cloud kernels. For the root only: several controllers race for their names.
        "-drive", f"file={root},if=none,id=root,format=raw,snapshot=on,cache=unsafe",
        "-device", "nvme,drive=root,serial=root",
    ]
    if machine.numa > 1:
        share = mebibytes(machine.memory) // machine.numa
        for node in range(machine.numa):
            words += ["-object", f"memory-backend-ram,id=m{node},size={share}M",
                      "-numa", f"node,nodeid={node},memdev=m{node}"]
    for disk in machine.disks:
        throttle = f",throttling.iops-total={disk.iops}" if disk.iops else ""
        words += ["-drive", f"file={disk.file},if=none,id={disk.serial},format=raw,cache=unsafe{throttle}",
                  "-device", f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}"]
    # After the disks: what comes later and names no bus is put on this one, which takes bridges alone.
    if machine.device_node is not None:
        words += ["-device", f"pxb-pcie,id=far,bus=pcie.0,bus_nr=128,numa_node={machine.device_node}",
                  "-device", "pcie-root-port,id=far-port,bus=far,chassis=9,slot=9",
                  "-device", "virtio-rng-pci,bus=far-port"]
    return words
