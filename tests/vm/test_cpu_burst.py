# SPDX-License-Identifier: Apache-2.0
"""cpu.max.burst for pods that are throttled while their CPUs are idle: granted, withdrawn under contention, and never left behind."""

import json

from latency import bursts, install, latencies, seconds_until_withdrawn, serve, throttled_periods
from node import Node, Pod, kubelet_configuration

CPUS = 2
MEMORY = "1G"

QUOTA = "20%"  # 20 ms in 100 ms
BURST = 20_000
WORK, INTERVAL = 0.025, 0.31  # a twelfth of a CPU, but more at a time than the quota of a period


def configuration(**headroom) -> str:
    return kubelet_configuration(hard="20Mi", **headroom)


def changes(node: Node) -> list[str]:
    return [change["object"] for change in json.loads(node.vm.run("headroomctl changes --json", check=True).out)["changes"]
            if change["setting"] == "cpu.max.burst"]


def wait_for_burst(node: Node, pod: Pod, microseconds: int) -> None:
    node.vm.wait_until(f"[ $(cat {pod.cgroup}/cpu.max.burst) = {microseconds} ] && "
                       f"[ $(cat {pod.cgroup}/{pod.unit}/cpu.max.burst) = {microseconds} ]", timeout=60)


def test_a_throttled_pod_with_idle_cpus_is_granted_a_burst(vm):
    with Node(vm) as node:
        install(vm)
        node.start(configuration(cpuBurst={"budget": "20%"}))
        pod = serve(node, Pod("service"), WORK, INTERVAL, 3, 20, QUOTA)
        wait_for_burst(node, pod, BURST)
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | grep -q '^headroom_cpu_burst_pods 1'", timeout=5)  # a turn later
        status = node.status()
        assert status["counters"]["cpu_burst"]["pods"] == 1, status["counters"]
        assert abs(status["counters"]["cpu_burst"]["cpus"] - 0.2) < 0.01, status["counters"]
        assert sorted(changes(node)) == sorted(each.removeprefix("/sys/fs/cgroup") for each in (pod.cgroup, f"{pod.cgroup}/{pod.unit}"))
        assert "headroom_cpu_burst_pods 1" in node.metrics()
        latencies(node, "service-0", 60)
        before = throttled_periods(node, pod)
        latencies(node, "service-1", 60)
        throttled = throttled_periods(node, pod) - before
        assert throttled <= 6, f"{throttled}, of some sixty pieces of work, each of which was throttled: {node.status()['counters']['cpu_burst']}"
        lasted = seconds_until_withdrawn(node, pod, 2)
        print(f"    withdrawn after {lasted:.2f} s of contention")
        assert lasted < 1
        assert bursts(node, pod) == [0, 0] and not changes(node)


def test_no_grant_is_left_when_the_daemon_stops_or_dies(vm):
    with Node(vm) as node:
        install(vm)
        node.start(configuration(cpuBurst={"budget": "20%"}))
        pod = serve(node, Pod("service"), WORK, INTERVAL, 1, 600, QUOTA)
        wait_for_burst(node, pod, BURST)
        node.stop()
        assert bursts(node, pod) == [0, 0]
        assert vm.run("test -e /run/headroom/cpu-burst.json").code == 1
        vm.run("systemctl start headroomd.service", check=True)
        wait_for_burst(node, pod, BURST)
        vm.run("systemctl mask --runtime headroomd.service; "
               "systemctl kill -s KILL headroomd.service; sleep 1", check=True)
        assert bursts(node, pod) == [BURST, BURST], "a killed daemon restores nothing itself"
        assert len(changes(node)) == 2
        vm.run("systemctl unmask headroomd.service", check=True)
        node.configure(configuration())
        vm.run("systemctl reset-failed headroomd.service; systemctl start headroomd.service", check=True)
        node.vm.wait_until(f"[ $(cat {pod.cgroup}/cpu.max.burst) = 0 ]")
        assert bursts(node, pod) == [0, 0] and not changes(node)


def test_observe_and_a_pod_at_its_quota_are_granted_nothing(vm):
    with Node(vm) as node:
        install(vm)
        node.start(configuration(mode="observe", cpuBurst={"budget": "20%"}))
        pod = serve(node, Pod("service"), WORK, INTERVAL, 1, 600, QUOTA)
        vm.run("sleep 8")
        assert bursts(node, pod) == [0, 0]
        node.stop()
        hog = node.run_script(Pod("hog"), "while :; do :; done", f"CPUQuota={QUOTA}")
        node.start(configuration(cpuBurst={"budget": "20%"}))
        wait_for_burst(node, pod, BURST)
        assert vm.run(f"cat {hog.cgroup}/{hog.unit}/cpu.max.burst").out.split() == ["0"], "it saves nothing of its quota"
