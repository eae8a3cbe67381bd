# SPDX-License-Identifier: Apache-2.0
"""Eviction for cpu.pressure, if it is asked for: the pod whose CPU use above its request explains the waits, one at a time."""

import json

from node import Node, Pod, kubelet_configuration

CPUS = 2
MEMORY = "1G"

THRESHOLD = {"threshold": "35%", "grace": "3s"}
PATIENCE = 90  # the grace, windows of 5 s, cpu.pressure up to 2 s late, and sweeps; the node is busy


def configuration(mode: str = "enforce", **cpu) -> str:
    return kubelet_configuration(hard="20Mi", mode=mode, max_pod_grace=2, pressure={"cpu": THRESHOLD | cpu})


def run_loops(node: Node, pod: Pod, loops: int = 2) -> Pod:
    return node.run_script(pod, " ".join("(while :; do :; done) &" for _ in range(loops)) + " wait")


def protected(node: Node) -> Pod:
    """Within its request, though it wants all CPUs: it gets half of them."""
    request = {"cpu": "1900m", "memory": "16Mi"}
    return run_loops(node, Pod("protected", "burstable", request))


def test_the_pod_over_its_request_is_evicted_and_the_next_one_a_period_later(vm):
    with Node(vm, replayed=True) as node:
        node.start(configuration(evict=True, evictPeriod="60s"))
        wanted = protected(node)
        idle = node.run_script(Pod("idle", priority=-10), "exec sleep 6000")
        hogs = [run_loops(node, Pod("low", priority=-5)), run_loops(node, Pod("high", priority=5))]
        first = node.wait_for_evictions(1, timeout=PATIENCE)[0]
        assert first["pod"]["name"] == "low" and first["signal"] == "cpu.pressure" and first["kind"] == "soft", first
        assert first["usage"] > first["request"] == 0, first
        assert first["outcome"] == "evicted", first
        selections = {each["name"]: each["selection"] for each in first["ranking"]}
        assert selections["idle"] == selections["protected"] == "nothing_to_free", selections
        assert selections["high"] == "outranked", selections
        second = node.wait_for_evictions(2, timeout=60 + PATIENCE)[1]
        assert second["pod"]["name"] == "high", second
        apart = (second["boot_ns"] - first["boot_ns"]) / 1e9
        print(f"    {apart:.1f} s between two evictions")
        assert apart >= 60
        vm.run("sleep 75")
        assert len(node.evictions()) == 2 and node.alive(wanted) and node.alive(idle), "it does not make others wait"
        assert not any(node.alive(hog) for hog in hogs)
        why = vm.run("headroomctl why", check=True).out
        assert "cpu.pressure" in why and "explain" in why, why
        assert 'headroom_evictions_total{mode="enforce",outcome="done",signal="cpu.pressure"} 2' in node.metrics()
        assert 'kubelet_evictions{eviction_signal="cpu.pressure"} 2' in node.metrics()


def test_pods_within_their_requests_are_not_evicted(vm):
    with Node(vm) as node:
        node.start(configuration(evict=True, evictPeriod="5s"))
        pods = [run_loops(node, Pod(name, "burstable", {"cpu": "1900m", "memory": "16Mi"})) for name in ("left", "right")]
        vm.wait_until("headroomctl status --json | grep -q '\"CPUPressure\":true'", timeout=PATIENCE)
        vm.run("sleep 20")
        assert not node.evictions() and all(node.alive(pod) for pod in pods)


def test_by_default_and_in_observe_no_pod_is_evicted(vm):
    with Node(vm) as node:
        node.start(configuration())
        pods = [protected(node), run_loops(node, Pod("hog"))]
        vm.wait_until("headroomctl status --json | grep -q '\"CPUPressure\":true'", timeout=PATIENCE)
        vm.run("sleep 20")
        assert not node.evictions() and all(node.alive(pod) for pod in pods)
        node.configure(configuration(mode="observe", evict=True))
        vm.run("systemctl restart headroomd.service", check=True)
        would = node.wait_for_evictions(1, timeout=PATIENCE)[0]
        assert would["pod"]["name"] == "hog", json.dumps(would)
        assert all(node.alive(pod) for pod in pods)
