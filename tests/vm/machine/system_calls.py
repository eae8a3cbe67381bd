# SPDX-License-Identifier: Apache-2.0
"""The system calls that the programs make in a guest, counted by the kernel: what SystemCallFilter= of the units must allow."""

import re
from collections import Counter

EVENT = "/sys/kernel/tracing/events/raw_syscalls/sys_enter"
# The programs and their threads, which have names of their own.
COUNTED = 'comm ~ "headroom*" || comm ~ "hr-*"'
LINE = re.compile(r"common_pid: (.+?) *\[ *\d+\], id: (?:sys_)?(\S+) *\[ *\d+\] } hitcount: *(\d+)")
DROPPED = re.compile(r"Dropped: ([1-9]\d*)")


def count(vm) -> None:
    """From now on."""
    vm.run("mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing", check=True)
    vm.run(f"echo 'hist:keys=common_pid.execname,id.syscall:size=65536 if {COUNTED}' > {EVENT}/trigger", check=True)


def counted(vm) -> Counter:
    """(name of the thread, system call): how often. "dropped" for a call whose kind is not known: the table was full."""
    text = vm.run(f"cat {EVENT}/hist", check=True).out
    calls = Counter()
    for thread, call, times in LINE.findall(text):
        calls[thread, call] += int(times)
    if dropped := DROPPED.search(text):
        calls["?", "dropped"] += int(dropped[1])
    return calls
