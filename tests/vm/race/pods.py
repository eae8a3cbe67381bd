# SPDX-License-Identifier: Apache-2.0
"""The pods of a race: a hog, and others that must stay, one of them larger than the hog will be when it must go."""

from node import Node, Pod

MIB = 1 << 20
OTHERS = (
    (Pod("bank", "guaranteed", {"memory": "256Mi", "cpu": "100m"}, {"memory": "256Mi", "cpu": "100m"}), 160),
    (Pod("database", "burstable", {"memory": "800Mi"}), 600),
    (Pod("web", "burstable", {"memory": "300Mi"}), 120),
    (Pod("cron"), 8),
)
HELD = sum(held for _, held in OTHERS)


def kubelets_score(pod: Pod, capacity_mib: int) -> int:
    """The oom_score_adj a kubelet gives its containers."""
    if pod.tier == "guaranteed":
        return -997
    if pod.tier == "besteffort":
        return 1000
    request = int(pod.requests["memory"].removesuffix("Mi"))
    return min(max(1000 - 1000 * request // capacity_mib, 3), 999)


def properties(pod: Pod, capacity_mib: int, scored: bool) -> list[str]:
    return [f"OOMScoreAdjust={kubelets_score(pod, capacity_mib)}"] if scored else []


def run_others(node: Node, capacity_mib: int, scored: bool) -> dict[int, str]:
    """Their processes by pid, when all hold what they will."""
    for pod, held in OTHERS:
        node.run_pod(pod, f"--hold {held}M", *properties(pod, capacity_mib, scored))
    node.vm.wait_until(f"[ $(cat /sys/fs/cgroup/kubepods.slice/memory.current) -ge {HELD * MIB} ]")
    units = " ".join(pod.unit for pod, _ in OTHERS)
    pids = node.vm.run(f"systemctl show -P MainPID {units}", check=True).out.split()
    return {int(pid): pod.name for pid, (pod, _) in zip(pids, OTHERS, strict=True)}


def run_hog(node: Node, filler: str, capacity_mib: int, scored: bool) -> Pod:
    hog = Pod("hog")
    return node.run_pod(hog, f"--hold 1M --after 1 {filler} --until 16G", *properties(hog, capacity_mib, scored))


def wait_for_end(node: Node, hog: Pod, timeout: float) -> None:
    """By its process, as asking systemd again and again would cost what is measured; it may outlive TIMEOUT."""
    node.vm.run(f"tail -s 0.1 --pid=$(systemctl show -P MainPID {hog.unit}) -f /dev/null", timeout=timeout)
