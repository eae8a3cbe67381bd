# SPDX-License-Identifier: Apache-2.0
"""Pods that grow over their memory limits and shrink, again and again: headroomd raises the limits while the node has room, and
lowers them. What matters is that no lowering makes the kernel kill, and that nothing stays raised when the daemon ends."""

from node import Node, Pod, kubelet_configuration

MIB = 1 << 20
LIMIT = 44  # MiB
SHAPE = {"memory": "3G", "cpus": 2, "counted": True}
# What it holds goes with the inner process.
WAVE = "while :; do /opt/headroom/bin/workload --hold 30M --rate 60M --until 56M --exit; sleep 2.6; done"


def left_raised(vm, pods: list[Pod]) -> list[str]:
    """Limits that differ from the original although the pod would fit."""
    left = []
    for pod in pods:
        cgroup = f"{pod.cgroup}/{pod.unit}"
        limit, high, current = vm.run(f"cat {cgroup}/memory.max {cgroup}/memory.high {cgroup}/memory.current", check=True).out.split()
        if (int(limit) != LIMIT * MIB and int(current) <= (LIMIT - 3) * MIB) or high != "max":
            left.append(f"{pod.name}: memory.max {limit}, memory.high {high}, memory.current {current}")
    return left


def seconds_up(vm) -> float:
    """By the guest's clock: that of a machine whose instructions are counted is not the host's."""
    return float(vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)


def run(vm, pods: int, lowerings: int, seconds: float) -> dict:
    """Ends after so many lowerings or seconds. {kernel, pods, raises, lowerings, …, oom_kills, evictions, died, left_raised}"""
    vm.run("swapoff -a", check=True)
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="60Mi", podLimits={"rescue": {"ceiling": "150%", "margin": "5%"}}))
        killed = node.kernel_oom_kills()
        waves = [node.run_script(Pod(f"wave-{number}", "burstable", {"memory": "20Mi"}), WAVE, f"MemoryMax={LIMIT}M")
                 for number in range(pods)]
        began = seconds_up(vm)
        counts = node.status()["counters"]["pod_memory"]
        while counts["lowerings"] < lowerings and seconds_up(vm) - began < seconds:
            vm.run("sleep 5", timeout=60)
            counts = node.status()["counters"]["pod_memory"]
        row = {"kernel": vm.run("uname -r").out.strip(), "pods": pods, "seconds": round(seconds_up(vm) - began)} | counts
        living = [pod for pod in waves if node.alive(pod)]
        row |= {"oom_kills": node.kernel_oom_kills() - killed, "evictions": len(node.evictions()),
                "died": [pod.name for pod in waves if pod not in living]}
        for pod in living:
            vm.run(f"systemctl kill -s STOP {pod.unit}", check=True)
        node.stop()
        return row | {"left_raised": left_raised(vm, living)}


def faults(row: dict, lowerings: int) -> list[str]:
    wrong = [f"{key}: {row[key]}" for key in ("oom_kills", "evictions", "died", "left_raised") if row[key]]
    return wrong + ([f"only {row['lowerings']} lowerings of {lowerings}"] if row["lowerings"] < lowerings else [])
