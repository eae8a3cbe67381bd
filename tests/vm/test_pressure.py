# SPDX-License-Identifier: Apache-2.0
"""memory.pressure without swap: the pod that thrashes over its request goes, and no other; and none at all for
what one does to itself. (With swap, and cause by cause: test_attribution.)"""

from disk_node import wait_for_condition
from node import Node, Pod, kubelet_configuration, small_bystanders

MEMORY = "1G"
DISK = "512M"
DISK_IOPS = 1000  # a machine's own may be quick enough to hide any thrashing
METRICS_PORT = 9750

FILE = "/mnt/disk/text"
WORKLOAD = "/opt/headroom/bin/workload"
MIB = 1 << 20


def started(node, mode="enforce"):
    """Memory itself is no reason to evict; and pressure is, sooner than any operator would set it."""
    node.vm.run(f"head -c 300M /dev/urandom > {FILE}; sync; swapon --show | grep . && exit 1; "
                "echo 3 > /proc/sys/vm/drop_caches", check=True, timeout=120)
    config = kubelet_configuration(hard="1Mi", mode=mode, pressure={"memory": {"threshold": "20%", "grace": "3s"}})
    node.start(config.replace('"evictionMaxPod', '"evictionPressureTransitionPeriod": "5s", "evictionMaxPod'))
    return node


def lost(node):
    """Of the last moment, in percent."""
    return next(100 - signal["available"] / 10_000 for signal in node.status()["signals"]
                if signal["signal"] == "memory.pressure")


def test_a_pod_that_thrashes_over_its_request_goes(vm):
    """Eight read 300 MiB by chance, again and again, and there is room for most of it, but not for all."""
    with Node(vm) as node:
        started(node)
        others = small_bystanders(node)
        hold = node.holding_to_leave(300)
        thrasher = node.run_script(Pod("thrasher", "burstable", {"memory": "64Mi"}),
                                   f"{WORKLOAD} --map {FILE} & " * 7 + f"exec {WORKLOAD} --hold {hold}M --map {FILE}")
        wait_for_condition(node, "MemoryPressure", True, timeout=60)
        print(f"    memory.pressure: {lost(node):.1f}% of the last moment lost")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "thrasher" and record["signal"] == "memory.pressure", record
        assert record["kind"] == "soft" and record["threshold"] == 800_000, record
        assert record["latency"]["first_seen_to_decision_ms"] >= 3000, record
        assert record["instants_ns"]["terminated"] and not node.alive(thrasher), record
        assert record["usage"] > 300 * MIB and record["memory_returned"] > 200 * MIB, record
        wait_for_condition(node, "MemoryPressure", False)
        assert lost(node) < 5
        assert all(node.alive(pod) for pod in others) and len(node.evictions()) == 1
        assert node.kernel_oom_kills() == 0
        assert 'kubelet_evictions{eviction_signal="memory.pressure"} 1' in node.metrics()
        said = vm.run("headroomctl evictions; headroomctl why thrasher", check=True).out
        assert "memory.pressure" in said and "80.0%" in said, said


def test_waits_at_a_pods_own_limit_are_no_pressure(vm):
    """The same text read again and again below its own limit; a quota that is used up; a file read once after another."""
    with Node(vm) as node:
        started(node)
        pods = small_bystanders(node)
        pods += [node.run_pod(Pod("limited"), f"--map {FILE}", "MemoryMax=100M"),
                 node.run_script(Pod("throttled"), "while :; do :; done", "CPUQuota=5%"),
                 node.run_script(Pod("reader"), "while :; do dd if=/dev/nvme0n1 of=/dev/null bs=1M 2>/dev/null; done")]
        vm.run("sleep 5")
        most = 0.0
        for _ in range(20):
            vm.run("sleep 1")
            most = max(most, lost(node))
        status = node.status()
        limited = next(pod for pod in status["pods"] if pod["name"] == "limited")
        stalls = {cause: waits["ns"] / 1e9 for cause, waits in limited["stalls"].items()}
        print(f"    at most {most:.1f}% lost; the one at its limit waited {stalls}")
        assert sum(stalls.values()) > 0.2, "it waits, and it is its own affair"
        assert most < 20 and not any(status["conditions"].values()) and not node.evictions()
        assert all(node.alive(pod) for pod in pods)


def test_thrashing_lowers_memory_available(vm):
    """With thrashAware: page cache that is read back as fast as it is taken does not count as available."""
    with Node(vm, replayed=True) as node:
        vm.run(f"head -c 300M /dev/urandom > {FILE}; sync; swapon --show | grep . && exit 1; "
               "echo 3 > /proc/sys/vm/drop_caches", check=True, timeout=120)
        node.start(kubelet_configuration(hard="30Mi", thrashAware=True))
        others = small_bystanders(node)
        limited = node.run_pod(Pod("limited"), f"--map {FILE}", "MemoryMax=60M")
        vm.run("sleep 15", timeout=60)
        swap = node.status()["swap"]
        print(f"    a pod at its own limit: stalled {swap['stalled_ratio']:.2f}, {swap['bound']}")
        assert not node.evictions() and swap["bound"] == "kubelet" and not swap["swap"], swap
        node.forget(limited)
        hold = node.holding_to_leave(300)
        node.run_script(Pod("thrasher", "burstable", {"memory": "64Mi"}),
                        f"{WORKLOAD} --map {FILE} & " * 7 + f"exec {WORKLOAD} --hold {hold}M --map {FILE}")
        record, = node.wait_for_evictions(1, timeout=90)
        assert record["pod"]["name"] == "thrasher" and record["signal"] == "memory.available", record
        vm.run("sleep 3")
        assert all(node.alive(pod) for pod in others) and len(node.evictions()) == 1
        assert node.kernel_oom_kills() == 0
