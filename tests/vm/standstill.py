# SPDX-License-Identifier: Apache-2.0
"""Whether headroomd's loop stood still while its machine ran, and what its threads did then.

The loop is its first thread, which wakes every second at least once it has started: until the sentinel's thread is there, that
thread loads BPF programs, or waits for the one that does.
"""

import json

LIMIT = 3  # seconds
# In the guest, of a higher real-time priority than the loop's, on any CPU. It adds up the time between its own wakes, and of one that
# came late little: while the machine stands still, nothing is added. One JSON object for each time: the seconds since boot, and what /proc says of each thread.
WATCH = """
import ctypes, glob, json, os, sys, time
file, limit, processes, period = sys.argv[1], float(sys.argv[2]), sys.argv[3], 0.1
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(89))
ctypes.CDLL(None).mlockall(3)

def read(path):
    try:
        with open(path) as each:
            return each.read().strip()
    except OSError as error:
        return str(error)

started = None  # the process whose loop has begun

def has_started(pid):
    global started
    if pid != started and any(read(comm) == "hr-sentinel" for comm in glob.glob(f"/proc/{pid}/task/*/comm")):
        started = pid
    return pid == started

def loop():
    pid = read(processes).partition("\\n")[0]
    return pid, has_started(pid) and [line for line in read(f"/proc/{pid}/status").splitlines() if "ctxt_switches" in line]

def threads(pid):
    return {f"{task.rpartition('/')[2]} {read(task + '/comm')}": {what: read(f"{task}/{what}") for what in
            ("wchan", "syscall", "schedstat", "stat", "stack")} for task in glob.glob(f"/proc/{pid}/task/*")}

with open(file, "a", buffering=1) as out:
    last, still, said, woke = loop(), 0, False, time.monotonic()
    while True:
        time.sleep(period)
        before, woke, seen = woke, time.monotonic(), loop()
        still = still + min(woke - before, 2 * period) if seen == last and seen[1] else 0
        said = said and still > 0
        last = seen
        if still >= limit and not said:
            said = True
            out.write(json.dumps({"at": time.clock_gettime(time.CLOCK_BOOTTIME), "threads": threads(seen[0])}) + "\\n")
"""


class Standstill:
    """Watches a VM's headroomd, which runs, from start() on; after it is started again, the new one."""

    def __init__(self, vm):
        self.vm = vm

    def start(self) -> None:
        self.vm.put(WATCH.encode(), "/run/standstill.py")
        group = self.vm.run("systemctl show -P ControlGroup headroomd.service", check=True).out.strip()
        assert group, "headroomd does not run"
        processes = f"/sys/fs/cgroup{group}/cgroup.procs"
        self.vm.spawn(f"exec /opt/headroom/bin/python3 /run/standstill.py /run/standstill {LIMIT} {processes}", unit="lab-standstill")

    def stop(self) -> None:
        self.vm.run("systemctl stop lab-standstill; rm -f /run/standstill")

    def read(self) -> list[dict]:
        """Each time that the loop did nothing for LIMIT seconds."""
        return [json.loads(line) for line in self.vm.run("cat /run/standstill", check=True).out.splitlines()]
