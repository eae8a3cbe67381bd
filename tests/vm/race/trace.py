# SPDX-License-Identifier: Apache-2.0
"""Which task got a deadly signal, from which, and when it was gone: from the kernel's tracepoints, by CLOCK_MONOTONIC."""

import re
from dataclasses import dataclass

TRACING = "/sys/kernel/tracing"
START = f"""
    cd {TRACING}; mountpoint -q . || mount -t tracefs tracefs .
    echo 0 > tracing_on; echo mono > trace_clock; echo > trace
    echo '(sig == 9 || sig == 15) && comm == "workload"' > events/signal/signal_generate/filter
    echo 'comm == "workload"' > events/sched/sched_process_exit/filter
    for event in signal/signal_generate sched/sched_process_exit oom/mark_victim; do echo 1 > events/$event/enable; done
    echo 1 > tracing_on
"""
STOP = f"cd {TRACING}; echo 0 > tracing_on; cat trace; echo 0 > events/enable"
LINE = re.compile(r"^\s*(?P<by>.+)-\d+\s+\[\d+\]\s+\S+\s+(?P<at>[\d.]+): (?P<event>\w+): .*?\bpid=(?P<pid>\d+)")


@dataclass(frozen=True)
class Event:
    at: float  # seconds
    name: str  # signal_generate, sched_process_exit or mark_victim
    by: str  # whose time it was: the sender's of a signal
    pid: int


def start(vm) -> None:
    vm.run(START, check=True)


def stop(vm) -> list[Event]:
    found = map(LINE.match, vm.run(STOP, check=True).out.splitlines())
    return [Event(float(line["at"]), line["event"], line["by"], int(line["pid"])) for line in found if line]
