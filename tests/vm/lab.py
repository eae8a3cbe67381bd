# SPDX-License-Identifier: Apache-2.0
"""A throw-away machine for a test: a stock Debian under an emulator, driven through a serial port.

    with Lab(kernel="6.12", memory="2G", payload=Path("build/payload")) as vm:
        assert vm.run("uname -r", check=True).out.startswith("6.12")
        unit = vm.spawn("exec /opt/headroom/bin/hog 500M", properties=["MemoryHigh=200M"])
        vm.wait_until(f"grep -q '^high [1-9]' /sys/fs/cgroup/system.slice/{unit}/memory.events")

The disk is a snapshot: whatever a test does is gone with the machine. There is no network but the wires between machines.
run() executes inside lab.slice, protected from memory pressure and preferred by the scheduler, so that the test keeps
its eyes; anything that should feel the pressure, or make it, belongs in a unit of its own: spawn().
"""

import contextlib
import itertools
import os
import queue
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine import cache, image, payload as packing, qemu
from machine.agent import Agent, InfrastructureError, Reply
from machine.payload import bundle

__all__ = ["Lab", "Result", "Skip", "CommandFailed", "InfrastructureError", "bundle"]

BOOT_TIMEOUT = 60  # seconds; a boot takes 4 to 9, more when the host is busy
CPU_TIMEOUT = 5  # seconds more for each CPU beyond eight: they are brought up one by one
SILENCE = 30  # seconds past a command's own timeout before the agent counts as dead
HOST_SECONDS = 20  # that a second of a guest with counted instructions may take; the guest itself ends what is late
DEATH = re.compile(r"Kernel panic.*|.*double fault.*|.*Unable to mount root.*", re.I)
FAULT = re.compile(r"(?:BUG: |kernel BUG |general protection fault|Oops).*")
FAULTING_FUNCTION = re.compile(r"RIP: 0010:(\S+)|pc : (\S+)")


def cause_of_death(console: str) -> str:
    """The kernel's last words in one line, with its first fault and where that was; "" if it has none."""
    reason = DEATH.search(console)
    if not reason:
        return ""
    fault, function = FAULT.search(console), FAULTING_FUNCTION.search(console)
    details = [fault[0].strip()] if fault else []
    if function:
        details.append("at " + (function[1] or function[2]))
    return reason[0].strip() + (f" ({', '.join(details)})" if details else "")


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


class CommandFailed(AssertionError):
    def __init__(self, script: str, result: "Result"):
        super().__init__(f"{result.how} of: {script.strip()[:2000]}\n{result.tail(40)}")
        self.result = result


@dataclass(frozen=True)
class Result:
    code: int  # as a shell says it: 128 + n for a signal, 124 for a timeout
    data: bytes  # standard output and error, merged in the order they were written
    how: str  # "exit 3", "signal 9", "timeout 9", "flood 9" (more than 64 MiB of output)
    seconds: float

    @property
    def out(self) -> str:
        return self.data.decode(errors="replace")

    @property
    def timed_out(self) -> bool:
        return self.how.startswith("timeout")

    def tail(self, lines: int) -> str:
        return "\n".join(self.out.splitlines()[-lines:])


class Command:
    """A command under way in the guest."""

    def __init__(self, lab: "Lab", script: str, timeout: float, data: bytes):
        self.lab, self.script, self.began = lab, script, time.monotonic()
        self.deadline = self.began + timeout * (HOST_SECONDS if lab.machine.counted else 1) + SILENCE
        self.answer = lab.agent.start(script, timeout, data)

    def wait(self, check: bool = False) -> Result:
        reply = self._reply()
        code = {"exit": reply.number, "signal": 128 + reply.number}.get(reply.how, 124)
        result = Result(code, reply.data, f"{reply.how} {reply.number}", time.monotonic() - self.began)
        self.lab.last = result
        if check and code != 0:
            raise CommandFailed(self.script, result)
        return result

    def _reply(self) -> Reply:
        try:
            reply = self.answer.get(timeout=max(0.0, self.deadline - time.monotonic()))
        except queue.Empty:
            raise self.lab.died(f"no answer to: {self.script.strip()[:200]}") from None
        if reply is None:
            raise self.lab.died("the guest is gone")
        return reply


class Lab:
    """One VM. Sizes are written as 512M or 2G.

    payload   folder unpacked at /opt/headroom (see bundle)      swap   size of a swap disk, switched on
    disk      size of an ext4 disk mounted at /mnt/disk          disk_iops   operations a second it answers, as a real one
    numa      nodes; topology "sockets=2,cores=2,threads=2"; device_node  the one a PCI device hangs on
    max_cpus  possible CPUs; plain_disks  further virtio disks, of 64 MiB each; max_memory  up to which plug_memory() goes
    cmdline   kernel words appended, e.g. "mitigations=auto"     keep_dir   where a failure leaves its evidence
    ports     network cards, eth0 and on; plugged_into   another machine's port(), which this one's eth0 is connected to
    counted   time is counted in instructions: the same in every run, whatever else the machine does. With a swap disk or
              another disk, it is the host's while all CPUs wait
    exclusive one VM at a time on this machine: latencies mean nothing otherwise
    """

    def __init__(self, kernel: str = "6.12", memory: str = "2G", cpus: int = 2, payload: Path | None = None,
                 swap: str | None = None, disk: str | None = None, disk_iops: int = 0, topology: str = "", numa: int = 1,
                 cmdline: str = "", keep_dir: Path | None = None, metrics_port: int | None = None, exclusive: bool = True,
                 counted: bool = False, device_node: int | None = None, max_cpus: int = 0, plain_disks: int = 0,
                 max_memory: str = "", ports: int = 0, plugged_into: Path | None = None):
        self.kernel, self.payload, self.swap, self.disk, self.disk_iops = kernel, payload, swap, disk, disk_iops
        self.machine = qemu.Machine(memory, cpus, topology, numa, cmdline, counted=counted, waits_for_disks=bool(swap or disk),
                                    device_node=device_node, max_cpus=max_cpus, plain_disks=plain_disks,
                                    max_memory=max_memory, ports=ports, plugged_into=plugged_into)
        self.keep_dir, self.metrics_port, self.exclusive = keep_dir, metrics_port, exclusive
        self.boot_seconds = 0.0
        self.last: Result | None = None  # the latest command's, for a failing test's report
        self._units = itertools.count(1)

    # The machine's life

    def __enter__(self) -> "Lab":
        self.image, self.tools = image.obtain(self.kernel), qemu.toolchain()
        with contextlib.ExitStack() as stack:
            if self.exclusive:
                stack.enter_context(cache.locked("vm"))
            self.run_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headroom-lab-")))
            stack.callback(self._power_off)
            self.machine.disks = self._make_disks()
            self._boot_twice_if_must()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind, error, trace) -> None:
        try:
            if error is not None and self.keep_dir and not isinstance(error, (Skip, KeyboardInterrupt, SystemExit)):
                self.collect(self.keep_dir)
        finally:
            self._stack.close()

    def _make_disks(self) -> list[qemu.Disk]:
        disks = []
        if self.payload:
            if not self.payload.is_dir():
                raise InfrastructureError(f"no payload: make {os.path.relpath(self.payload)}/.made")
            disks.append(qemu.Disk(packing.tar_disk(self.payload, self.run_dir / "payload.tar"), "payload"))
        if self.swap:
            disks.append(qemu.Disk(packing.swap_disk(self.swap, self.run_dir / "swap.img"), "swap"))
        if self.disk:
            disks.append(qemu.Disk(packing.ext4_disk(self.disk, self.run_dir / "disk.img"), "disk", self.disk_iops))
        return disks

    def _boot_twice_if_must(self) -> None:
        try:
            self._boot()
        except InfrastructureError as error:
            cache.say(f"{self.kernel} did not boot, trying once more: {error}")
            self._power_off()
            try:
                self._boot()
            except InfrastructureError:
                if self.keep_dir:
                    self.collect(self.keep_dir)
                raise

    def _boot(self) -> None:
        began = time.monotonic()
        timeout = BOOT_TIMEOUT + CPU_TIMEOUT * max(0, self.machine.cpus - 8)
        deadline = began + timeout
        # pdeathsig: killed by SIGKILL ourselves, we leave no emulator behind. It fires when the thread that
        # called us ends, so a Lab belongs to a thread that outlives it. An own session: Ctrl-C is ours to handle.
        command = ["setpriv", "--pdeathsig", "KILL", *qemu.program(self.tools),
                   *qemu.arguments(self.machine, self.image.kernel, self.image.root, self.run_dir, self.image.initrd)]
        with open(self.run_dir / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(command, env=qemu.environment(self.tools), start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.agent = Agent(self.run_dir / "agent.sock", began + 10)
        except InfrastructureError as error:
            raise self.died(str(error)) from None
        self.agent.ready.wait(timeout)
        if self.agent.gone.is_set() or not self.agent.ready.is_set():
            raise self.died(f"no agent after {time.monotonic() - began:.0f} s")
        state = self.run("systemctl is-system-running --wait || systemctl list-units --failed --plain --no-legend",
                         timeout=max(1.0, deadline - time.monotonic()))
        if state.out.strip() != "running":
            raise self.died(f"the system is {state.out.strip() or state.how}")
        self.boot_seconds = time.monotonic() - began
        self._attach_disks()

    def _attach_disks(self) -> None:
        attach = {"payload": f"mkdir -p {packing.PREFIX} && tar -C {packing.PREFIX} -xf %s",
                  "swap": "swapon %s", "disk": "mkdir -p /mnt/disk && mount -t ext4 %s /mnt/disk"}
        for disk in self.machine.disks:
            device = f"/dev/disk/by-id/virtio-{disk.serial}"
            result = self.run(f"udevadm wait --timeout=20 {device} && {attach[disk.serial] % device}", timeout=60)
            if result.code != 0:
                raise self.died(f"attach the {disk.serial} disk: {result.out.strip() or result.how}")

    def _power_off(self) -> None:
        if getattr(self, "agent", None):
            self.agent.close()
        if getattr(self, "process", None):
            self.process.kill()  # by its pid; it is our child, so the number cannot be another's
            self.process.wait()

    def kill(self) -> None:
        """From another thread: the test that runs there ends with the machine."""
        if getattr(self, "process", None):
            self.process.kill()

    def died(self, what: str) -> InfrastructureError:
        """The error for a machine that is not there any more, with what its console said last."""
        console = self._text("console.log") + self._text("qemu.log")
        reason = cause_of_death(console)
        tail = "\n".join(console.splitlines()[-50 if reason else -15:])
        return InfrastructureError(f"{self.kernel}: {what}{': ' + reason if reason else ''}\n{tail}")

    def _text(self, name: str) -> str:
        file = self.run_dir / name
        return file.read_text(errors="replace") if file.exists() else ""

    # What a test does with it

    def start(self, script: str, timeout: float = 30, data: bytes = b"") -> Command:
        """Begin a command; others may run beside it. Its process group dies with its shell or its timeout, of the guest's clock."""
        return Command(self, script, timeout, data)

    def run(self, script: str, timeout: float = 30, check: bool = False, data: bytes = b"") -> Result:
        """Run a shell script as root, with DATA as its standard input."""
        return self.start(script, timeout, data).wait(check)

    def port(self, number: int) -> Path:
        return qemu.port(self.run_dir, number)

    def plug_memory(self, size: str, node: int = 0) -> None:
        qemu.plug_memory(self.run_dir, size, node)

    def plug_cpu(self) -> None:
        qemu.plug_cpu(self.run_dir)

    def suspend(self, seconds: float) -> Result:
        """To idle, with every task frozen and every device off; the power button wakes it after so long."""
        woken = f"/run/lab-woken-{next(self._units)}"
        # A press before it sleeps, on a slow host, ends the attempt.
        asleep = self.start("modprobe button; until echo freeze > /sys/power/state; do sleep 0.1; done 2>/dev/null; "
                            f"touch {woken}", timeout=60)
        time.sleep(seconds)
        while asleep.answer.empty() and time.monotonic() < asleep.deadline:
            qemu.press_power_button(self.run_dir)
            # The port drops what is on its way when the machine sleeps: maybe the answer, or the question.
            if self._is_true_within(f"[ -e {woken} ]", 0.5):
                return Result(0, b"", "exit 0", time.monotonic() - asleep.began)
        return asleep.wait()

    def _is_true_within(self, test: str, seconds: float) -> bool:
        try:
            reply = self.start(test, timeout=10).answer.get(timeout=seconds)
        except queue.Empty:
            return False
        return reply is not None and (reply.how, reply.number) == ("exit", 0)

    def spawn(self, script: str, unit: str = "", properties=(), slice: str = "") -> str:
        """Start a script as a transient service, with the PATH of run(), and return its unit's name; it outlives the call, and is
        forgotten when it ends, failed or not."""
        name = unit or f"headroom-test-{next(self._units)}.service"
        words = ["systemd-run", "--quiet", "--collect", f"--unit={name}", "--setenv=PATH",
                 *([f"--slice={slice}"] if slice else []), *(f"--property={each}" for each in properties),
                 "/bin/sh", "-c", script.replace("$", "$$")]
        self.run(shlex.join(words), check=True)
        return name if name.endswith(".service") else f"{name}.service"

    def stop(self, *units: str) -> None:
        names = shlex.join(units)
        self.run(f"systemctl stop {names}; systemctl reset-failed {names} 2>/dev/null; true", check=True, timeout=60)

    def wait_until(self, condition: str, timeout: float = 30) -> Result:
        """Poll a shell condition inside the guest."""
        return self.run(f"until {{ {condition}\n}}; do sleep 0.05; done", timeout=timeout, check=True)

    def put(self, local: Path | bytes, remote: str, mode: str = "0644") -> None:
        data = local if isinstance(local, bytes) else Path(local).read_bytes()
        target = shlex.quote(remote)
        self.run(f'mkdir -p "$(dirname {target})" && cat > {target} && chmod {mode} {target}',
                 timeout=120, check=True, data=data)

    def get(self, remote: str, local: Path | None = None) -> bytes:
        data = self.run(f"cat {shlex.quote(remote)}", timeout=120, check=True).data
        if local:
            Path(local).write_bytes(data)
        return data

    def collect(self, folder: Path) -> None:
        """Leave what a human needs to understand a failure, as far as the machine still answers."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("console.log", "qemu.log"):
            if (self.run_dir / name).exists():
                shutil.copy(self.run_dir / name, folder / name)
        wanted = {"journal.txt": "journalctl -b -o short-precise --no-hostname"}
        if self.metrics_port:
            wanted["metrics.txt"] = f"curl -sS --max-time 5 http://127.0.0.1:{self.metrics_port}/metrics"
        last = self.last
        try:
            for name, script in wanted.items():
                (folder / name).write_bytes(self.run(script, timeout=30).data)
        except (InfrastructureError, AttributeError):  # no agent yet, or no more
            pass
        self.last = last
        cache.say(f"evidence in {folder}")
