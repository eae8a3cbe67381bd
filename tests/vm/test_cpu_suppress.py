# SPDX-License-Identifier: Apache-2.0
"""cpu.idle for BestEffort and batch pods while pods with a guarantee lose time to the node's shortage of CPUs: the least important
first, nothing of an operator's, and nothing left behind."""

import json

from node import Node, Pod, kubelet_configuration

CPUS = 2
MEMORY = "1G"

WEIGHT = 20  # of each pod, as a kubelet sets one
TIER = "/sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice"
REQUEST = {"cpu": "500m", "memory": "16Mi"}
PATIENCE = 90  # two windows of 5 s, cpu.pressure up to 2 s late, and sweeps; the node is busy
HOLD = 60  # of low contention before a release
STAYS_DEAD = "/run/systemd/system/headroomd.service.d/stays-dead.conf"
LOOPS = "for i in 1 2; do (while :; do :; done) & done; wait"


def configuration(**headroom) -> str:
    return kubelet_configuration(hard="20Mi", **headroom)


def run_loops(node: Node, pod: Pod) -> Pod:
    """Two busy loops. The weight makes systemd enable the cpu controller, as it does beside a kubelet."""
    node.vm.run(f"systemctl set-property --runtime {pod.slice} CPUWeight={WEIGHT}", check=True)
    return node.run_script(pod, LOOPS)


def protected(node: Node) -> Pod:
    return run_loops(node, Pod("protected", "burstable", REQUEST, priority=100))


def values(node: Node, cgroup: str) -> tuple[int, int]:
    """cpu.idle and cpu.weight."""
    idle, weight = node.vm.run(f"cat {cgroup}/cpu.idle {cgroup}/cpu.weight", check=True).out.split()
    return int(idle), int(weight)


def wait_for_idle(node: Node, cgroup: str, idle: int, timeout: float = PATIENCE) -> None:
    node.vm.wait_until(f"[ $(cat {cgroup}/cpu.idle) = {idle} ]", timeout=timeout)


def cpus_used(node: Node, pod: Pod, seconds: int) -> float:
    out = node.vm.run(f"""
        read_both() {{ awk '/^usage_usec/ {{print $2}}' {pod.cgroup}/cpu.stat; cut -d' ' -f1 /proc/uptime; }}
        read_both; sleep {seconds}; read_both""", timeout=20 * seconds + 30, check=True).out.split()
    used, began, used_later, ended = map(float, out)
    return (used_later - used) / 1e6 / (ended - began)


def changes(node: Node) -> set[tuple[str, str, str]]:
    listed = json.loads(node.vm.run("headroomctl changes --json", check=True).out)["changes"]
    return {(each["setting"], each["object"], each["original"]) for each in listed if each["setting"] in ("cpu.idle", "cpu.weight")}


def counts(node: Node) -> dict:
    return node.status()["counters"]["cpu_suppress"]


def test_best_effort_pods_are_suppressed_and_released(vm):
    with Node(vm) as node:
        node.start(configuration(cpuSuppress={"threshold": "20%"}))
        hog = run_loops(node, Pod("hog"))
        node.vm.run("sleep 20")
        assert values(node, hog.cgroup) == (0, WEIGHT), "it makes no other pod wait"
        wanted = protected(node)
        wait_for_idle(node, hog.cgroup, 1)
        wait_for_idle(node, TIER, 1)
        assert values(node, hog.cgroup)[0] == 1
        used = cpus_used(node, wanted, 10)
        print(f"    the protected pod uses {used:.2f} of {CPUS} CPUs beside two loops of a suppressed pod")
        assert used > 1.6, "half of the CPUs are its share by weight"
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | grep -q '^headroom_cpu_suppressed_pods 1'", timeout=10)  # a turn later
        assert counts(node)["pods"] == 1 and counts(node)["failed"] == 0, counts(node)
        tier_weight = next(original for setting, place, original in changes(node) if (setting, place) == ("cpu.weight", TIER.removeprefix("/sys/fs/cgroup")))
        assert ("cpu.weight", hog.cgroup.removeprefix("/sys/fs/cgroup"), str(WEIGHT)) in changes(node)
        assert next(pod for pod in node.status()["pods"] if pod["name"] == "hog")["cpu_suppressed"]
        assert values(node, wanted.cgroup) == (0, WEIGHT)
        node.forget(wanted)
        vm.run("sleep 20")
        assert values(node, hog.cgroup)[0] == 1, "contention may return"
        wait_for_idle(node, hog.cgroup, 0, timeout=HOLD + PATIENCE)
        wait_for_idle(node, TIER, 0, timeout=10)
        vm.wait_until(f"[ $(cat {hog.cgroup}/cpu.weight) = {WEIGHT} ] && [ $(cat {TIER}/cpu.weight) = {tier_weight} ]", timeout=10)
        assert not changes(node)
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | grep -q '^headroom_cpu_suppress_changes_total.*released.* 1'", timeout=10)  # a turn later
        assert node.alive(hog) and counts(node)["released"] == 1


def test_batch_pods_follow_and_no_pod_with_a_guarantee(vm):
    with Node(vm) as node:
        node.start(configuration(cpuSuppress={"threshold": "20%", "batchPriority": 0}))
        operators = run_loops(node, Pod("operators"))
        vm.run(f"echo 1 > {operators.cgroup}/cpu.idle", check=True)
        hog = run_loops(node, Pod("hog"))
        batch = run_loops(node, Pod("batch", "burstable", REQUEST, priority=0))
        bank = run_loops(node, Pod("bank", "guaranteed", REQUEST, REQUEST, priority=-10))
        wanted = protected(node)
        vm.run(f"until [ $(cat {hog.cgroup}/cpu.idle) = 1 ]; do [ $(cat {batch.cgroup}/cpu.idle) = 0 ] || exit 1; sleep 0.1; done",
               timeout=PATIENCE, check=True)
        wait_for_idle(node, batch.cgroup, 1)
        vm.run("sleep 15")
        for pod in (wanted, bank):
            assert values(node, pod.cgroup) == (0, WEIGHT), pod.name
        assert values(node, "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice")[0] == 0, "a protected pod is in it"
        node.stop()
        for pod in (hog, batch):
            assert values(node, pod.cgroup) == (0, WEIGHT), pod.name
        assert values(node, operators.cgroup)[0] == 1, "what an operator set stays"


def test_nothing_is_left_when_the_daemon_reloads_stops_or_dies(vm):
    with Node(vm) as node:
        node.start(configuration(cpuSuppress={"threshold": "20%"}))
        wanted, hog = protected(node), run_loops(node, Pod("hog"))
        wait_for_idle(node, hog.cgroup, 1)
        node.configure(configuration())
        vm.run("systemctl reload headroomd.service", check=True)
        wait_for_idle(node, hog.cgroup, 0, timeout=5)
        vm.wait_until(f"[ $(cat {hog.cgroup}/cpu.weight) = {WEIGHT} ]", timeout=5)
        node.configure(configuration(cpuSuppress={"threshold": "20%"}))
        vm.run("systemctl reload headroomd.service", check=True)
        wait_for_idle(node, hog.cgroup, 1)
        node.stop()
        assert values(node, hog.cgroup) == (0, WEIGHT)
        assert vm.run("test -e /run/headroom/cpu-suppress.json").code == 1
        vm.run(f"printf '[Service]\\nRestart=no\\n' > {STAYS_DEAD} && systemctl daemon-reload && systemctl start headroomd.service", check=True)
        wait_for_idle(node, hog.cgroup, 1)
        # Until systemd has reaped it, which on a node this busy takes seconds, a start would do nothing.
        vm.run("pid=$(systemctl show -P MainPID headroomd.service); kill -KILL $pid; until [ ! -e /proc/$pid ]; do sleep 0.1; done",
               timeout=60, check=True)
        assert values(node, hog.cgroup)[0] == 1, "a killed daemon restores nothing itself"
        assert ("cpu.weight", hog.cgroup.removeprefix("/sys/fs/cgroup"), str(WEIGHT)) in changes(node)
        node.configure(configuration())
        vm.run("systemctl reset-failed headroomd.service; systemctl start headroomd.service", check=True)
        vm.wait_until(f"[ $(cat {hog.cgroup}/cpu.idle) = 0 ] && [ $(cat {hog.cgroup}/cpu.weight) = {WEIGHT} ] && "
                      f"[ $(cat {TIER}/cpu.idle) = 0 ]")
        assert not changes(node), changes(node)
        assert node.alive(wanted) and node.alive(hog)
        vm.run(f"rm {STAYS_DEAD} && systemctl daemon-reload", check=True)


def test_observe_suppresses_nothing(vm):
    with Node(vm) as node:
        node.start(configuration(mode="observe", cpuSuppress={"threshold": "20%"}))
        protected(node)
        hog = run_loops(node, Pod("hog"))
        vm.run("sleep 30")
        assert values(node, hog.cgroup) == (0, WEIGHT)
        assert not changes(node)
