# SPDX-License-Identifier: Apache-2.0
"""When the machine itself was late: a thread of the highest real-time priority on each CPU, which only sleeps, woke too late.

An emulated CPU stands still while the host runs something else, and a kernel without preemption runs a long call to its end. A
daemon is as late then, whatever it does.
"""

import json

# In the guest, for one CPU: times in nanoseconds, a line for each wake that was late. A CPU that goes offline takes the thread off it.
WATCH = """
import ctypes, os, sys, time
cpu, file, clock = int(sys.argv[1]), sys.argv[2], getattr(time, sys.argv[3])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
ctypes.CDLL(None).mlockall(3)
now = lambda: time.clock_gettime_ns(clock)
with open(file, "w", buffering=1) as late:
    while True:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError:
            time.sleep(0.1)
            continue
        due = now() + 20_000_000
        time.sleep(0.02)
        woke = now()
        if woke - due > 5_000_000:
            late.write(f"[{due}, {woke}]\\n")
"""


class Lateness:
    """Watches a VM from start() on, by a clock of Python's module time. CLOCK_MONOTONIC stands still while the machine is suspended."""

    def __init__(self, vm, clock: str = "CLOCK_BOOTTIME"):
        self.vm, self.clock = vm, clock

    def start(self) -> None:
        self.vm.put(WATCH.encode(), "/run/lateness.py")
        for cpu in range(int(self.vm.run("nproc", check=True).out)):
            self.vm.spawn(f"exec /opt/headroom/bin/python3 /run/lateness.py {cpu} /run/late.{cpu} {self.clock}", unit=f"lab-lateness-{cpu}")

    def stop(self) -> None:
        self.vm.run("systemctl stop 'lab-lateness-*'")

    def read(self) -> list[tuple[int, int]]:
        """Intervals, in nanoseconds of the clock, in which a CPU did not run what was to run."""
        return [tuple(json.loads(line)) for line in self.vm.run("cat /run/late.*", check=True).out.splitlines()]


def longest_ms(intervals: list[tuple[int, int]], begin: int, end: int) -> float:
    """The longest part of one of them between two times."""
    return max((min(end, until) - max(begin, since) for since, until in intervals if since < end and until > begin), default=0) / 1e6
