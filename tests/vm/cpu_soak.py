# SPDX-License-Identifier: Apache-2.0
"""Twenty pinned pods at once come and go, some together, while headroomd is killed and its state file lost, at any moment.

Two watchers share no code with headroomd. One runs in the guest all the time, as fast as it can: no two pods that are
confined to as many CPUs as they ask for have one in common, and each must have a CPU. The other looks after every step,
once all has settled: what each process may run on is what the state file says, and who ran on CPUs of its own before and
still runs has them still.
"""

import random
import shlex
import statistics
import time

from node import ETC, Node, Pod
import test_cpus as cpus

PODS = 20
# The machine: CPUs for all of them, most of the time.
MEMORY = "2G"
CPUS = 24
TOPOLOGY = "sockets=2,cores=6,threads=2"
NUMA = 2
SHAPE = {"memory": MEMORY, "cpus": CPUS, "topology": TOPOLOGY, "numa": NUMA}

# CPU 0 is reserved: who runs on it shares, however many CPUs it has. Three programs a look; mawk would wait for a full
# buffer of input. A pid is one of a pod's by the look's own list. A look takes its time, and a CPU may change hands in it:
# what it finds together is looked at again, the one before and after the other.
WATCHER = r"""
while :; do
    grep -sHo '"uid": "[^"]*"\|"cpu": "[0-9]*"' /etc/headroom/manifests/*.yaml
    find /sys/fs/cgroup/kubepods.slice -path '*-pod*' -name cgroup.procs -exec grep -sH . {} +
    grep -sH ^Cpus_allowed_list: /proc/[0-9]*/status
    echo look
done 2>/dev/null | awk -W interactive '
    function expand(list, set,    parts, ends, i, cpu, n) {
        split("", set); n = 0
        for (i = split(list, parts, ","); i > 0; i--) {
            if (split(parts[i], ends, "-") == 1) ends[2] = ends[1]
            for (cpu = ends[1] + 0; cpu <= ends[2] + 0; cpu++) { set[cpu] = 1; n++ }
        }
        return n
    }
    function still_on(pid, cpu, many,    file, line, list, set, words) {
        file = "/proc/" pid "/status"
        while ((getline line < file) > 0) if (line ~ /^Cpus_allowed_list:/) { split(line, words); list = words[2] }
        close(file)
        return expand(list, set) == many && (cpu in set)
    }
    function are_together(cpu, one, other) {
        return still_on(one, cpu, wants[pod[one]]) && still_on(other, cpu, wants[pod[other]]) &&
            still_on(one, cpu, wants[pod[one]])
    }
    function is_run(pid, list,    uid, set, cpu) {
        uid = pod[pid]
        if (list == "") { print "nowhere", uid; fflush() }
        if (!(uid in wants) || expand(list, set) != wants[uid] || (0 in set)) return
        for (cpu in set) {
            if ((cpu in owner) && pod[owner[cpu]] != uid) {
                suspects++
                if (are_together(cpu, owner[cpu], pid)) { print "two", cpu, pod[owner[cpu]], uid; fflush() }
            }
            owner[cpu] = pid
        }
        confined++
    }
    /"uid":/ { uid = $2; gsub(/"/, "", uid) }
    /"cpu":/ { cpus = $2; gsub(/"/, "", cpus); wants[uid] = cpus }
    /cgroup.procs:/ {
        pid = $1; sub(/.*:/, "", pid)
        sub(/.*-pod/, "", $1); sub(/\.slice.*/, "", $1); gsub(/_/, "-", $1)
        pod[pid] = $1
    }
    /^.proc/ { split($1, part, "/"); if (part[3] in pod) is_run(part[3], $2) }
    $1 == "look" {
        print "look", confined + 0, suspects + 0; fflush()
        confined = suspects = 0; split("", owner); split("", wants); split("", pod)
    }
    ' > /run/watched
"""
WATCHER_UNIT = "headroom-test-watcher.service"

# A killed daemon takes its time to be gone, and is started by its unit: what is timed begins when it is back.
UPSETS = {
    "kill": """old=$(systemctl show -P MainPID headroomd.service); systemctl kill -s KILL headroomd.service
        until [ "$(systemctl show -P MainPID headroomd.service)" != "$old" ] && systemctl -q is-active headroomd.service
        do sleep 0.1; done""",
    "loss": f"systemctl stop headroomd.service; rm -f {cpus.STATE}; systemctl start headroomd.service",
    "reload": "systemctl daemon-reload",
    "restart": "",  # of some pods' containers
}


# In this order over and over, at random moments: a short soak has had the worst of it as well.
ORDER = ("kill", "loss", "reload", "kill", "loss", "restart")


class Soak:
    def __init__(self, node: Node, seed: int):
        self.node, self.vm, self.dice = node, node.vm, random.Random(seed)
        self.running: list[Pod] = []
        self.entries: dict = {}
        self.born = self.steps = self.moved = 0
        self.upsets = dict.fromkeys(UPSETS, 0)
        self.took: dict[str, list[float]] = {}

    def settle(self, after: str) -> None:
        """Who still runs has what it had; who was refused before may be served now."""
        took, (_, entries, _) = cpus.settled(self.vm, timeout=120)
        self.took.setdefault(after, []).append(took)
        still = {pod.uid for pod in self.running} & set(self.entries)
        self.moved += sum(entries.get(uid) != self.entries[uid] for uid in still)
        self.entries = entries

    def births(self, count: int) -> tuple[list[Pod], str]:
        """The manifest first, then the unit, as Node has it; all of them together."""
        pods, script = [], ""
        for _ in range(count):
            self.born += 1
            pod = cpus.whole(f"soak-{self.born}", self.dice.choice([1] * 9 + [2]))
            pods.append(pod)
            script += (f"(echo {shlex.quote(pod.manifest())} > {ETC}/manifests/{pod.name}.yaml; systemd-run --quiet "
                       f"--collect --unit={pod.unit} --slice={pod.slice} /bin/sleep 3600) &\n")
        return pods, script + "wait"

    @staticmethod
    def deaths(pods: list[Pod]) -> str:
        files = " ".join(f"{ETC}/manifests/{pod.name}.yaml" for pod in pods)
        units = " ".join(f"{pod.unit} {pod.slice}" for pod in pods)
        return f"rm -f {files}; systemctl stop {units}; true"

    def upset(self) -> tuple[str, str]:
        kind = ORDER[sum(self.upsets.values()) % len(ORDER)]
        self.upsets[kind] += 1
        again = " ".join(pod.unit for pod in self.dice.sample(self.running, 3))
        return kind, UPSETS[kind] or f"systemctl restart {again}"

    def step(self) -> None:
        """Some go while as many come, and mostly something else happens meanwhile, or once all is quiet."""
        self.steps += 1
        going = self.dice.sample(self.running, self.dice.randint(1, 5))
        self.running = [pod for pod in self.running if pod not in going]
        coming, births = self.births(PODS - len(self.running))
        kind, script = self.upset() if self.dice.random() < 0.6 else ("", "")
        meanwhile = self.dice.random() < 0.5
        commands = [births, self.deaths(going)] + ([script] if script and meanwhile else [])
        for command in [self.vm.start(each, timeout=120) for each in commands]:
            command.wait(check=True)
        self.running += coming
        self.settle("churn and " + kind if kind and meanwhile else "churn")
        if script and not meanwhile:
            self.vm.run(script, timeout=120, check=True)
            self.settle(kind)

    def start(self) -> None:
        self.running, births = self.births(PODS)
        self.vm.run(births, timeout=120, check=True)
        self.settle("start")

    def end(self) -> None:
        self.vm.run(self.deaths(self.running), timeout=120, check=True)


def run(vm, minutes: float, seed: int) -> dict:
    """{kernel, minutes, steps, born, upsets by kind, looks, pinned_at_once, violations, moved, settle_seconds by kind}"""
    with Node(vm) as node:
        node.start(cpus.configuration())
        cpus.sleep_in(node, Pod("web", "burstable", {"cpu": "100m"}))
        vm.spawn(WATCHER, unit=WATCHER_UNIT)
        soak = Soak(node, seed)
        soak.start()
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            soak.step()
        vm.run(f"systemctl stop {WATCHER_UNIT}")
        soak.end()
        watched = vm.run("cat /run/watched", check=True).out.splitlines()
        looks = [[int(number) for number in line.split()[1:]] for line in watched if line.startswith("look")]
        confined = [look[0] for look in looks]
        violations = [line for line in watched if not line.startswith("look")]
        for line in violations[:10]:
            print(line)
        return {"kernel": vm.run("uname -r").out.strip(), "minutes": minutes, "steps": soak.steps, "born": soak.born,
                "upsets": soak.upsets, "looks": len(looks),
                "pinned_at_once": {"median": statistics.median(confined), "max": max(confined)},
                "looked_at_again": sum(look[1] for look in looks), "violations": len(violations), "moved": soak.moved,
                "settle_seconds": {kind: {"times": len(took), "median": round(statistics.median(took), 2),
                                          "max": round(max(took), 2)} for kind, took in sorted(soak.took.items())}}


def faults(row: dict) -> list[str]:
    """What a soak must not show."""
    wrong = [f"{row[what]} {what}" for what in ("violations", "moved") if row[what]]
    if row["pinned_at_once"]["max"] < PODS * 3 // 4:
        wrong.append(f"the watcher saw {row['pinned_at_once']['max']} pinned at once")
    return wrong
