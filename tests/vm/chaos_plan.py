# SPDX-License-Identifier: Apache-2.0
"""What `make chaos` does to a node, computed from a seed: the same seed gives the same faults and the same load at the same times.

Two faults that come to mind are not in it. BPF programs cannot be detached by another process: links of iterators, tracepoints and fentry
have no detach operation (kernel/bpf/syscall.c, 7.2: link_detach() returns EOPNOTSUPP), and nothing of them is pinned. An older version
of headroom is not in the tree: that a state file of another version is refused is for the unit tests.
"""

import random
from dataclasses import dataclass

# Shell scripts, each of which ends with the node as it was before it, but for headroomd. {0} is a number from 0 to 1.
# Its pid, also after a fault that has killed it: then that of the next one. 0 would be the script's own process group.
DAEMON = "$(until pid=$(systemctl show -P MainPID headroomd.service); [ $pid -gt 0 ]; do sleep 0.1; done; echo $pid)"
BACK = "until systemctl -q is-active headroomd.service; do sleep 0.1; done"
# Returns in the moment when a victim dies: its eviction is on record all the same, and once. Or after half a minute without one.
VICTIM_DIES = """before=0; read -r end _ < /proc/uptime; end=$((${{end%.*}} + 30)); count() {{ n=0; for file in /sys/fs/cgroup/kubepods.slice/*/*pod*/cgroup.events; do
            read -r _ populated < $file && [ "$populated" = 1 ] && n=$((n + 1)); done 2>/dev/null; }}
        while read -r now _ < /proc/uptime && [ ${{now%.*}} -lt $end ]; do count; [ $n -lt $before ] && break; before=$n; done
        sleep $(awk 'BEGIN {{print {0} / 20}}')"""
# systemd says "active" for a moment after SIGKILL, and that it has ended later still: the kernel's log has both in order, the end
# of the daemon and what its OOM killer does.
KILLED = "headroomd is killed by a fault"  # without a colon: the journal would take what is before it for a program's name
KILL = f"echo '{KILLED}' > /dev/kmsg; kill -9 $pid; while [ -d /proc/$pid ]; do sleep 0.1; done"
FAULTS = {
    "kill": f"pid={DAEMON}; {KILL}; sleep {{0}}; {BACK}",
    "kill-at-eviction": f"pid={DAEMON}; {VICTIM_DIES}; {KILL}; {BACK}",
    # As dpkg and the package's script do it.
    "upgrade-at-eviction": f"""cd /opt/headroom/bin && cp -p headroomd headroomd.dpkg-new; {VICTIM_DIES}
        mv headroomd.dpkg-new headroomd && systemctl daemon-reload && systemctl restart headroomd.service""",
    "stop": f"pid={DAEMON}; kill -STOP $pid; sleep {{0}}; kill -CONT $pid",
    "restart": "systemctl restart headroomd.service",
    "reload": "systemctl reload headroomd.service",
    "daemon-reload": "systemctl daemon-reload",
    "daemon-reexec": "systemctl daemon-reexec",
    "journal-restart": "systemctl restart systemd-journald.service",
    "journal-stop": "systemctl kill -s STOP systemd-journald.service; sleep {0}; systemctl kill -s CONT systemd-journald.service",
    "bus-stop": "systemctl kill -s STOP dbus.service; sleep {0}; systemctl kill -s CONT dbus.service",
    "bus-restart": "systemctl restart dbus.service",
    "full-disk": "head -c 64M /dev/zero > /var/log/headroom/filler 2>/dev/null; sleep 2; rm -f /var/log/headroom/filler",
    "clock": "date -s '+3 hours' >/dev/null; sleep {0}; date -s '-3 hours' >/dev/null",
    "cpu-offline": "echo 0 > /sys/devices/system/cpu/cpu1/online; sleep {0}; echo 1 > /sys/devices/system/cpu/cpu1/online",
    # The first block that can go, from the top: pages of the kernel cannot be moved.
    "memory-offline": """for block in $(ls -d /sys/devices/system/memory/memory* | sort -rV); do
            timeout 2 sh -c "echo offline > $block/state" 2>/dev/null && break; done
        sleep {0}; echo online > $block/state""",
    # Seen by the daemon alone: its state cannot be written.
    "run-read-only": f"""remount() {{{{ nsenter -t $1 -m mount -o remount,bind,$2 /run/headroom; }}}}
        pid={DAEMON}; remount $pid ro; sleep {{0}}; remount $pid rw""",
    # The values that were there before headroomd's: what it restores later must not be its own.
    "other-writer": """for n in 1 2 3 4 5; do for pod in /sys/fs/cgroup/kubepods.slice/*/*pod*/; do
        echo 100 > $pod/cpu.weight; echo max > $pod/cpu.max; echo max > $pod/memory.high; done; sleep 0.1; done 2>/dev/null; true""",
    "cgroups": """for n in $(seq 20); do mkdir /sys/fs/cgroup/headroom-test-$n; done; sleep 0.2
        for n in $(seq 20); do rmdir /sys/fs/cgroup/headroom-test-$n; done""",
    "pod-cgroups": """for n in $(seq 10); do mkdir -p /sys/fs/cgroup/kubepods.slice/kubepods-podchaos$n.slice/c; done; sleep 0.1
        for n in $(seq 10); do rmdir /sys/fs/cgroup/kubepods.slice/kubepods-podchaos$n.slice/c \
            /sys/fs/cgroup/kubepods.slice/kubepods-podchaos$n.slice; done""",
    "scrapes": "for n in $(seq 20); do curl -s --max-time 2 -o /dev/null http://127.0.0.1:9750/metrics & done; wait",
}
# Of the machine, not a script (Lab.suspend()).
SUSPEND = "suspend"
# Those that end the daemon's process by SIGKILL, each once.
KILLS = ("kill", "kill-at-eviction")
# How often a fault comes, where it is not once.
WEIGHTS = {"kill": 3, "kill-at-eviction": 4, "stop": 2}


@dataclass(frozen=True)
class Step:
    at: float  # seconds after the start
    fault: str  # "": a pod starts
    argument: float = 0.0
    rate: int = 0  # MiB a second that the pod takes
    flags: str = ""


def plan(seed: int, seconds: float, faults: bool = True) -> list[Step]:
    dice = random.Random(seed)
    steps, at = [], 1.0
    names = [name for name in (*FAULTS, SUSPEND) for _ in range(WEIGHTS.get(name, 1))]
    while at < seconds:
        if dice.random() < 0.35 or not faults:
            steps.append(Step(at, "", rate=dice.choice((60, 100, 150)),
                              flags=" ".join(flag for flag in ("--huge", "--deaf", "--random") if dice.random() < 0.3)))
        else:
            steps.append(Step(at, dice.choice(names), argument=round(dice.uniform(0.05, 1.0), 2)))
        at += dice.uniform(0.2, 4.0)
    return steps
