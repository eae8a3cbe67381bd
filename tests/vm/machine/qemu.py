# SPDX-License-Identifier: Apache-2.0
"""The emulator: trixie's qemu beside the system, and the command line of a machine.

Bookworm's qemu 7.2 emulates cmpxchg16b wrongly: guests die in a double fault under load.
"""

import re
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from . import architecture, cache
from .agent import InfrastructureError
from .debian import BuildError, bootstrap, require_tools

HERE = Path(__file__).resolve().parent
SUITE = "trixie"
PACKAGES = ("libc6", "libc-bin")

KERNEL_ARGUMENTS = (
    "root=/dev/nvme0n1 rw rootfstype=ext4 psi=1 quiet nokaslr random.trust_cpu=on audit=0 "
    "systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all panic=-1 net.ifnames=0 mitigations=off"
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
    max_cpus: int = 0  # possible CPUs; 0: those there are
    plain_disks: int = 0  # virtio disks of 64 MiB that read as zeros and forget what is written: virtio-plainN
    max_memory: str = ""  # memory can be plugged in up to this (plug_memory())
    ports: int = 0  # network cards, eth0 and on, each with a port() for one other machine
    plugged_into: Path | None = None  # the port of another machine that this one's eth0 is connected to
    counted: bool = False  # time is the number of instructions, one a nanosecond: slow, and the same in every run
    waits_for_disks: bool = False  # while all CPUs wait, time is the host's
    disks: list[Disk] = field(default_factory=list)


def mebibytes(size: str) -> int:
    units = {"M": 1, "G": 1024}
    return int(size[:-1]) * units[size[-1]]


def toolchain(refresh: bool = False) -> Path:
    packages = (architecture.of_guest().emulator_package, *PACKAGES)
    recipe = cache.digest(SUITE, packages, HERE / "debian.py")
    return cache.obtain(f"qemu{architecture.of_guest().label}", recipe, lambda out: _build(packages, out), refresh)


def _build(packages: tuple[str, ...], out: Path) -> None:
    require_tools()
    with cache.phase(f"qemu from {SUITE}"):
        bootstrap(SUITE, out / "tree", "extract", packages)
    emulator = architecture.of_guest().emulator
    if not (out / "tree/usr/bin" / emulator).exists():
        raise BuildError(f"extract qemu: the package has no {emulator}")


def program(tools: Path) -> list[str]:
    """It runs against its own C library, which is newer than the system's, through its own loader."""
    usr, here = tools / "tree/usr", architecture.of_host()
    return [str(usr / here.loader), "--library-path", str(usr / "lib" / here.gnu),
            str(usr / "bin" / architecture.of_guest().emulator), "-L", str(usr / "share/qemu"), "-L", str(usr / "share/seabios")]


def environment(tools: Path) -> dict[str, str]:
    modules = tools / "tree/usr/lib" / architecture.of_host().gnu / "qemu"
    return {"QEMU_MODULE_DIR": str(modules), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def clock(machine: Machine) -> list[str]:
    if machine.counted:
        # While all CPUs wait, the clock jumps to the next timer; but not past a disk, whose answer no timer announces.
        sleep = "on" if machine.waits_for_disks else "off"
        return ["-accel", "tcg,thread=single,tb-size=512", "-icount", f"shift=0,sleep={sleep}"]
    return ["-accel", "tcg,thread=multi,tb-size=512"]


def memory_size(machine: Machine) -> str:
    size = str(mebibytes(machine.memory))
    return f"{size}M,slots=8,maxmem={machine.max_memory}" if machine.max_memory else size


def plain_disks(count: int) -> list[str]:
    """Eight in a slot of the bus, which has 32 of them."""
    words = []
    for number in range(count):
        words += ["-blockdev", f"driver=null-co,node-name=plain{number},size=67108864,read-zeroes=on",
                  "-device", f"virtio-blk-pci,drive=plain{number},serial=plain{number},multifunction=on,"
                             f"addr=0x{16 + number // 8:x}.{number % 8}"]
    return words


def port(run_dir: Path, number: int) -> Path:
    """A network card's end of the wire, while the machine runs."""
    return run_dir / f"port-{number}.sock"


def network(machine: Machine, run_dir: Path) -> list[str]:
    """Cards that reach other machines of the lab, and nothing else."""
    ends = [f"server=on,addr.type=unix,addr.path={port(run_dir, number)}" for number in range(machine.ports)]
    if machine.plugged_into:
        ends.append(f"server=off,addr.type=unix,addr.path={machine.plugged_into}")
    words = []
    for number, end in enumerate(ends):
        address = "52:54:" + secrets.token_bytes(4).hex(":")  # another one than those of other machines
        words += ["-netdev", f"stream,id=net{number},{end}",
                  "-device", f"virtio-net-pci,netdev=net{number},mac={address},romfile="]
    return words


def ask_monitor(run_dir: Path, commands: list[str], until: str) -> str:
    """QEMU's, until what it has written, which is the commands' characters as well, contains this expression: all of that."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(f"{run_dir}/monitor.sock")
        monitor.settimeout(10)
        answer = ""
        for command in commands:
            monitor.sendall(f"{command}\n".encode())
        while not re.search(until, answer, re.DOTALL):
            answer += monitor.recv(65536).decode(errors="replace")
    return answer


def plug_memory(run_dir: Path, size: str, node: int = 0) -> None:
    """While the machine runs. Its kernel decides whether the memory goes online at once (memhp_default_state=)."""
    ask_monitor(run_dir, [f"object_add memory-backend-ram,id=plugged-{node},size={size}",
                          f"device_add pc-dimm,id=dimm-{node},memdev=plugged-{node},node={node}", "info memory-devices"],
                until=f"Memory device.*dimm-{node}")


def plug_cpu(run_dir: Path) -> None:
    """The first of those that are possible and not there, while the machine runs. Its kernel has it offline at first."""
    listed = ask_monitor(run_dir, ["info hotpluggable-cpus"], until=r"Hotpluggable CPUs:.*\(qemu\)")
    free = [each for each in listed.split("type: ")[1:] if "qom_path" not in each]
    first = free[-1]  # the list begins with the last one
    place = re.findall(r'([a-z]+-id): "(\d+)"', first)
    words = [first.split('"')[1], "id=cpu-" + "-".join(number for _, number in place), *(f"{name}={number}" for name, number in place)]
    answer = ask_monitor(run_dir, [f"device_add {','.join(words)}"], until=r"\(qemu\).*\(qemu\)")
    if "Error" in answer:
        raise InfrastructureError(f"plug in a CPU: {answer}")


def press_power_button(run_dir: Path) -> None:
    """It wakes a machine that is suspended to idle."""
    ask_monitor(run_dir, ["system_powerdown"], until=r"\(qemu\).*\(qemu\)")


def arguments(machine: Machine, kernel: Path, root: Path, run_dir: Path, initrd: Path | None = None) -> list[str]:
    guest = architecture.of_guest()
    words = [
        *guest.hardware, *clock(machine), "-m", memory_size(machine),
        "-smp", ",".join(filter(None, [str(machine.cpus), machine.max_cpus and f"maxcpus={machine.max_cpus}",
                                       machine.topology])),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(kernel), "-append", f"{guest.kernel_words} {KERNEL_ARGUMENTS} {machine.cmdline}".strip(),
        "-serial", f"file:{run_dir}/console.log",
        # A virtio port takes a megabyte in 0.1 s; an emulated UART took 13 s for it.
        "-chardev", f"socket,id=agent,path={run_dir}/agent.sock,server=on,wait=off",
        "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,nr=1,name=agent",
        # NVMe is built into the cloud kernels. For the root only: several controllers race for their names.
        "-drive", f"file={root},if=none,id=root,format=raw,snapshot=on,cache=unsafe",
        "-device", "nvme,drive=root,serial=root",
    ]
    if initrd:
        words += ["-initrd", str(initrd)]
    if machine.numa > 1:
        share = mebibytes(machine.memory) // machine.numa
        for node in range(machine.numa):
            words += ["-object", f"memory-backend-ram,id=m{node},size={share}M",
                      "-numa", f"node,nodeid={node},memdev=m{node}"]
    for disk in machine.disks:
        throttle = f",throttling.iops-total={disk.iops}" if disk.iops else ""
        words += ["-drive", f"file={disk.file},if=none,id={disk.serial},format=raw,cache=unsafe{throttle}",
                  "-device", f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}"]
    words += plain_disks(machine.plain_disks) + network(machine, run_dir)
    words += ["-monitor", f"unix:{run_dir}/monitor.sock,server=on,wait=off"]
    # After the disks: what comes later and names no bus is put on this one, which takes bridges alone.
    if machine.device_node is not None:
        words += ["-device", f"pxb-pcie,id=far,bus=pcie.0,bus_nr=128,numa_node={machine.device_node}",
                  "-device", "pcie-root-port,id=far-port,bus=far,chassis=9,slot=9",
                  "-device", "virtio-rng-pci,bus=far-port"]
    return words
