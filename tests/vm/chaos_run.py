# SPDX-License-Identifier: Apache-2.0
"""Random faults under random load, and what must hold meanwhile and afterwards.

What is checked is read without headroomd's code: from systemd, cgroupfs, /proc and the record of evictions.
"""

import collections
import json
import re
import time

from chaos_plan import FAULTS, KILLED, KILLS, SUSPEND, plan
from lateness import Lateness, longest_ms
from node import ETC, Node, Pod, kubelet_configuration
from standstill import LIMIT, Standstill

MEMORY, CPUS = "3G", 3
# A stopped journald reads what the kernel logged when it goes on: nothing of it may be overwritten until then.
SHAPE = {"memory": MEMORY, "cpus": CPUS, "cmdline": "log_buf_len=16M"}
HARD = "900Mi"
# The longest time that best-effort pods are held at memory.high, and how late its end may be seen here.
SQUEEZE_SECONDS, LATE_SECONDS = 5, 20
# For how long a process may run on another pod's own CPU: until a daemon that was killed is back.
SHARED_SECONDS = 20
# All the time: twenty cgroups are made and removed in each second.
CHURN = "headroom-test-churn.service"
CHURNING = "while :; do for n in $(seq 20); do mkdir $n; done; sleep 0.5; for n in $(seq 20); do rmdir $n; done; sleep 0.5; done"
# Its own growth from the first quiet moment to the last.
MAX_FILES, MAX_THREADS, MAX_MIB = 16, 2, 16

CAPABLE = "/run/systemd/system/headroomd.service.d/oom-score.conf"
# systemd's message IDs (sd-messages.h): a unit was started, its stop began, its process ended.
STARTED, STOPS, ENDED = "39f53479d3a045ac8e11786248231fbf", "de5b426a63be47a7b6ac3eaac82e2f6f", "98e322203f7a4ed290d09fe03c09fe15"
OOM_KILL = re.compile(r"oom-kill:.*/headroom-test-([^/]+)\.service")
LIMITS = ("memory.high", "memory.max", "cpu.max", "cpu.max.burst", "cpu.idle", "cpu.weight", "pids.max")


def bystanders(node) -> list[Pod]:
    bank = Pod("bank", "guaranteed", {"memory": "64Mi", "cpu": "1"}, {"memory": "64Mi", "cpu": "1"})  # a CPU of its own
    pods = [node.run_pod(bank, "--hold 40M", "MemoryMax=64M"),
            node.run_pod(Pod("web", "burstable", {"memory": "100Mi"}), "--hold 60M"),
            node.run_pod(Pod("cron"), "--hold 8M")]
    for pod, holding in zip(pods, (40, 60, 8)):
        node.vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {holding << 20} ]")
    return pods


def numbers(cpus: str) -> list[int]:
    """Of a list of the kernel's: 0-2,5."""
    ends = [part.partition("-") for part in cpus.split(",")]
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]


class Chaos:
    def __init__(self, node: Node, seed: int):
        self.node, self.vm, self.seed = node, node.vm, seed
        self.lateness, self.standstill = Lateness(node.vm, "CLOCK_MONOTONIC"), Standstill(node.vm)
        self.violations: list[str] = []
        self.faults: collections.Counter = collections.Counter()
        self.hogs: list[Pod] = []
        self.born = 0
        self.squeezed_since: dict[str, float] = {}
        self.shared_since: dict[str, float] = {}
        self.killed_without_daemon: list[str] = []

    def violated(self, what: str) -> None:
        self.violations.append(what)
        print(f"    seed {self.seed}: {what}", flush=True)

    # What is seen from outside

    def pids(self) -> dict[str, str]:
        return {pod.name: self.vm.run(f"systemctl show -P MainPID {pod.unit}", check=True).out.strip() for pod in self.others}

    def limits(self) -> dict[str, str]:
        files = " ".join(f"{pod.cgroup}/{name}" for pod in self.others for name in LIMITS)
        scores = " ".join(f"/proc/{pid}/oom_score_adj" for pid in self.began_as.values())
        lines = self.vm.run(f"grep -sH . {files} {scores}; true").out.splitlines()
        return dict(line.split(":", 1) for line in lines)

    def own_size(self) -> tuple[int, int, int]:
        """Descriptors, threads, MiB resident of headroomd."""
        out = self.vm.run("""pid=$(systemctl show -P MainPID headroomd.service); ls /proc/$pid/fd | wc -l; ls /proc/$pid/task | wc -l
            awk '/^VmRSS:/ {print int($2 / 1024)}' /proc/$pid/status""", check=True).out.split()
        return tuple(int(each) for each in out)

    def check_squeezes(self) -> None:
        now = time.monotonic()
        for file, value in self.limits().items():
            if file.endswith("memory.high") and value != self.limits_at_start[file]:
                since = self.squeezed_since.setdefault(file, now)
                if now - since > SQUEEZE_SECONDS + LATE_SECONDS:
                    self.violated(f"{file} is {value} for {now - since:.0f} s")
                    self.squeezed_since[file] = now + 3600
            else:
                self.squeezed_since.pop(file, None)

    def allowed_cpus(self) -> dict[str, set[int]]:
        """Of each pod that runs, the CPUs that its processes may run on."""
        lines = self.vm.run("".join(f"for pid in $(cat {pod.cgroup}/*/cgroup.procs); do echo {pod.name} "
                                    "$(awk '/^Cpus_allowed_list/ {print $2}' /proc/$pid/status); done\n"
                                    for pod in (*self.others, *self.hogs)) + "true").out.splitlines()
        found = collections.defaultdict(set)
        for name, cpus in (line.split() for line in lines if len(line.split()) == 2):
            found[name] |= set(numbers(cpus))
        return found

    def check_cpus(self) -> None:
        """No pod runs on the CPU that the bank has for itself; a CPU of one is all that it has."""
        now, allowed = time.monotonic(), self.allowed_cpus()
        own = allowed.get("bank", set())
        for name, cpus in allowed.items():
            if name == "bank" and len(own) != 1 or name != "bank" and cpus & own:
                since = self.shared_since.setdefault(name, now)
                if now - since > SHARED_SECONDS:
                    self.violated(f"for {now - since:.0f} s {name} may run on {sorted(cpus)}, bank on {sorted(own)}")
                    self.shared_since[name] = now + 3600
            else:
                self.shared_since.pop(name, None)

    # What happens

    def start_hog(self, step) -> None:
        self.hogs = [hog for hog in self.hogs if not self.forget_if_gone(hog)]
        if len(self.hogs) >= 3:
            return
        self.born += 1
        hog = Pod(f"chaos-{self.born}", grace=2)
        self.hogs.append(self.node.run_pod(hog, f"--hold 1M --rate {step.rate}M --until 16G {step.flags}"))

    def forget_if_gone(self, hog: Pod) -> bool:
        if self.node.alive(hog):
            return False
        self.node.forget(hog)
        return True

    def run_step(self, step) -> None:
        if not step.fault:
            return self.start_hog(step)
        self.faults[step.fault] += 1
        done = self.vm.suspend(2 + step.argument) if step.fault == SUSPEND else \
            self.vm.run(FAULTS[step.fault].format(step.argument), timeout=90)
        if done.code != 0:
            self.violated(f"after {step.fault}: {done.how}: {done.out.strip()[:300]}")

    def settle(self) -> None:
        """Every pod that takes memory is gone, and the daemon had a moment."""
        self.vm.run("systemctl start headroomd.service", timeout=60, check=True)
        for hog in list(self.hogs):
            self.vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=120)
            self.node.forget(hog)
        self.hogs.clear()
        self.vm.run("sleep 12", check=True)

    def check_records(self, killed: list[str]) -> None:
        """Each pod that took memory was evicted, and is on record once, unless the kernel killed it; no other is."""
        records = self.node.evictions()
        times = collections.Counter(record["pod"]["name"] for record in records)
        for name in [f"chaos-{number}" for number in range(1, self.born + 1)]:
            if times[name] != 1 and not (name in killed and times[name] == 0):
                self.violated(f"{name} is {times[name]} times on record, expected once")
            del times[name]
        for record in records:
            if record["pod"]["name"] in times:
                self.violated(f"{record['pod']['name']} was evicted, which had to stay: {json.dumps(record)}")

    def journal(self) -> list[tuple[float, dict]]:
        """What the kernel said, and systemd of headroomd's unit, with the seconds since boot, in their order. A stopped journal reads
        the kernel's log late, but with its times."""
        said = self.vm.run("journalctl -q -b -o json _TRANSPORT=kernel + _PID=1 UNIT=headroomd.service", check=True, timeout=120).out
        entries = [(int(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry["__MONOTONIC_TIMESTAMP"]) / 1e6, entry)
                   for entry in map(json.loads, said.splitlines())]
        return [each for each in sorted(entries, key=lambda each: each[0]) if each[0] > self.since]

    def kernel_kills(self) -> list[tuple[str, float, float | None]]:
        """Each pod that the kernel's OOM killer took, when, and how long headroomd was ready by then; None: it was not."""
        ready_since: float | None = self.since
        found = []
        for at, entry in self.journal():
            if entry.get("MESSAGE_ID") in (STARTED, STOPS, ENDED):
                ready_since = at if entry["MESSAGE_ID"] == STARTED else None
            elif str(entry["MESSAGE"]) == KILLED:
                ready_since = None
            elif match := OOM_KILL.search(str(entry["MESSAGE"])):
                found.append((match[1], at, None if ready_since is None else at - ready_since))
        return found

    def check_ends(self) -> None:
        """The daemon's process ended where a fault ended it, and nowhere else."""
        journal = [entry for _, entry in self.journal()]
        ends = [entry for entry in journal if entry.get("MESSAGE_ID") == ENDED]  # systemd reports failures only
        others = [entry["MESSAGE"] for entry in ends if (entry["EXIT_CODE"], entry["EXIT_STATUS"]) != ("killed", "9")]
        kills = sum(self.faults[name] for name in KILLS)
        if others or len(ends) > kills:
            self.violated(f"headroomd ended by itself: {len(ends)} ends, {kills} kills, of others: {others}")
        logged = sum(str(entry["MESSAGE"]) == KILLED for entry in journal)
        if logged != kills:
            self.violated(f"the kernel's log has {logged} kills of headroomd by faults, there were {kills}")

    def check_standstill(self) -> None:
        """The loop never stood still: no fault stops it for that long."""
        for each in self.standstill.read():
            self.violated(f"headroomd's loop did nothing for {LIMIT} s until {each['at']:.1f} s after boot: {json.dumps(each['threads'])}")

    def check_kernel_kills(self) -> list[str]:
        """A daemon that is not there prevents nothing: what died meanwhile is counted."""
        kills = self.kernel_kills()
        late = self.lateness.read()
        for name, at, ready in kills:
            if ready is not None:
                stood_still = longest_ms(late, int((at - 10) * 1e9), int(at * 1e9))
                self.violated(f"the kernel's OOM killer took {name} while headroomd was there, for {ready:.1f} s; "
                              f"in the 10 s before a CPU of the machine stood still for {stood_still:.0f} ms")
        counted = self.node.kernel_oom_kills() - self.oom_kills
        if len(kills) != counted:
            others = [str(entry["MESSAGE"]) for _, entry in self.journal()
                      if "oom-kill:" in str(entry["MESSAGE"]) and not OOM_KILL.search(str(entry["MESSAGE"]))]
            missed = self.vm.run("journalctl -q -b -o cat SYSLOG_IDENTIFIER=systemd-journald | grep -c 'Missed .* kernel'").out.strip()
            self.violated(f"the kernel counts {counted} OOM kills, its log has {len(kills)} of pods, {kills}, and of others {others}; "
                          f"journald says {missed} times that it missed what the kernel logged")
        self.killed_without_daemon = [name for name, _, ready in kills if ready is None]
        return [name for name, *_ in kills]

    def check_end(self) -> None:
        if self.pids() != self.began_as:
            self.violated(f"pods that had to stay: {self.began_as} at the start, {self.pids()} at the end")
        self.check_records(self.check_kernel_kills())
        self.check_ends()
        self.check_standstill()
        files, threads, mebibytes = self.own_size()
        if (files > self.size[0] + MAX_FILES or threads > self.size[1] + MAX_THREADS or mebibytes > self.size[2] + MAX_MIB):
            self.violated(f"descriptors, threads and MiB were {self.size} and are {files, threads, mebibytes}")
        self.node.stop()
        changed = {file: value for file, value in self.limits().items() if value != self.limits_at_start[file]}
        if changed:
            self.violated(f"left behind: {changed}")
        self.vm.run("headroomd --restore", check=True, timeout=60)  # the CPUs of containers, which they keep when it only stops
        ledger = json.loads(self.vm.run("headroomctl changes --json", check=True).out)["changes"]
        if ledger:
            self.violated(f"in the ledger after the end: {ledger}")
        left = self.vm.run("ls /run/systemd/system.control/ 2>/dev/null | grep -i pod; "
                           "systemctl list-units --plain --no-legend 'run-*' | grep headroom; true").out.strip()
        if left:
            self.violated(f"units left behind: {left}")

    def run(self, seconds: float, faults: bool) -> None:
        self.lateness.start()
        self.standstill.start()
        self.others = bystanders(self.node)
        self.began_as = self.pids()
        self.vm.run("sleep 5")
        self.limits_at_start = self.limits_without_daemon
        self.oom_kills = self.node.kernel_oom_kills()
        self.since = float(self.vm.run("cat /proc/uptime", check=True).out.split()[0])  # the journal's clock: a fault sets the other
        self.size = self.own_size()
        began = time.monotonic()
        for step in plan(self.seed, seconds, faults):
            if (wait := began + step.at - time.monotonic()) > 0:
                self.vm.run(f"sleep {wait:.2f}")
            elif wait < -seconds:  # a slow host has done as much as it can
                print(f"    the steps after {step.at:.0f} s are left out: they are {-wait:.0f} s late", flush=True)
                break
            print(f"    {time.monotonic() - began:5.1f} s {step.fault or f'pod {self.born + 1}: {step.rate} MiB/s {step.flags}'}", flush=True)
            self.run_step(step)
            self.check_squeezes()
            self.check_cpus()
        self.settle()
        self.check_end()

    @property
    def limits_without_daemon(self) -> dict[str, str]:
        """oom_score_adj is mirrored from the start: 0 was there before, as systemd's DefaultOOMScoreAdjust= has it."""
        return {file: "0" if file.endswith("oom_score_adj") else value for file, value in self.limits().items()}


def configuration() -> str:
    """Everything that headroomd can change of a pod is on, but what needs swap."""
    config = json.loads(kubelet_configuration(
        hard=HARD, soft="1200Mi", grace="2s", max_pod_grace=2, oomScoreAdj="mirror", cpus={"mode": "enforce"}, cpuBurst={"budget": "20%"},
        cpuSuppress={"threshold": "20%"}, podLimits={"reclaim": True, "rescue": {"ceiling": "150%", "margin": "5%"}},
        ladder={"reclaim": {"margin": "20%"}, "squeeze": {"margin": "20%", "maxDuration": f"{SQUEEZE_SECONDS}s"}}))
    return json.dumps(config | {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}, indent=1)


def run(vm, seed: int, seconds: float, faults: bool = True) -> dict:
    """{kernel, seed, seconds, faults by kind, pods, evictions, killed_without_daemon: pods that the kernel took meanwhile, violations}"""
    logs = "/var/log/headroom"
    with Node(vm) as node:
        vm.run(f"mkdir -p {logs} && mount -t tmpfs -o size=64m tmpfs {logs}", check=True)
        vm.put(b"[Service]\nCapabilityBoundingSet=CAP_SYS_RESOURCE\n", CAPABLE)
        vm.run("systemctl daemon-reload; swapoff -a", check=True)
        chaos = Chaos(node, seed)
        try:
            node.start(configuration())
            vm.run("mkdir /sys/fs/cgroup/headroom-test-churn", check=True)
            vm.spawn(f"cd /sys/fs/cgroup/headroom-test-churn && {CHURNING}", unit=CHURN)
            chaos.run(seconds, faults)
        finally:
            if chaos.violations:
                print(f"    replay: make chaos SEED={seed} MINUTES={seconds / 60:g}")
            chaos.lateness.stop()
            chaos.standstill.stop()
            vm.run(f"systemctl stop {CHURN}; rmdir /sys/fs/cgroup/headroom-test-churn/* /sys/fs/cgroup/headroom-test-churn; true")
            node.stop()
            evictions = len(node.evictions())
            vm.run(f"umount {logs}; true", timeout=60)
        return {"kernel": vm.run("uname -r").out.strip(), "seed": seed, "seconds": seconds, "faults": dict(chaos.faults),
                "pods": chaos.born, "evictions": evictions, "killed_without_daemon": chaos.killed_without_daemon, "violations": chaos.violations}
