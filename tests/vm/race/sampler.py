# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest: reads /proc/meminfo every 2 ms until SIGTERM, then prints what it saw.

A line is the time (CLOCK_MONOTONIC, ns) and, in KiB, MemAvailable, the kubelet's memory.available, anonymous memory and
MemTotal. It runs before all that is not realtime: a sample that is late is a crossing that is not known.
"""

import collections
import ctypes
import os
import signal
import sys
import time

PERIOD = 0.002
KEPT = 12000  # a run is shorter than the half minute they span
MCL_CURRENT_AND_FUTURE = 3


def values(text: bytes) -> tuple[int, ...]:
    lines = (line.split(b":") for line in text.splitlines())
    field = {name: int(rest.split()[0]) for name, rest in lines}
    file = field[b"Cached"] + field[b"Buffers"] + field[b"SwapCached"]
    working_set = field[b"AnonPages"] + file - field[b"Inactive(file)"]
    return field[b"MemAvailable"], field[b"MemTotal"] - working_set, field[b"AnonPages"], field[b"MemTotal"]


def main() -> None:
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    ctypes.CDLL(None).mlockall(MCL_CURRENT_AND_FUTURE)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    meminfo = os.open("/proc/meminfo", os.O_RDONLY)
    seen = collections.deque(maxlen=KEPT)
    print("ready", file=open("/run/sampler", "w"))
    while not stopped:
        seen.append((time.monotonic_ns(), os.pread(meminfo, 1200, 0)))  # 1200: up to the fields of interest, not all
        time.sleep(PERIOD)
    for at, text in seen:
        print(at, *values(text.rpartition(b"\n")[0]))


main() if __name__ == "__main__" else sys.exit("runs in the guest")
