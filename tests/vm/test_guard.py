# SPDX-License-Identifier: Apache-2.0
"""Memory that fills faster than we believed: the timer in the kernel wakes the loop."""

from crowd import Daemon, Spent
from node import Node, Pod, kubelet_configuration

MEMORY = "2G"
METRICS_PORT = 9750
BELIEVED = "1Mi"  # a second: the next check is as far away as a check can be
LIMIT = 400 << 20


def overshoot(vm, **headroom):
    """How far below the threshold memory was when the filler was chosen, and how often the guard woke the loop."""
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard=str(LIMIT), fastestFill=BELIEVED, **headroom))
        hog = node.run_pod(Pod("hog"), "--hold 1M --after 3.4 --until 4G")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == "hog" and not node.alive(hog) and node.kernel_oom_kills() == 0, record
        wakes = [line for line in node.metrics().splitlines() if line.startswith('headroom_wakeups_total{source="guard"}')]
        return (LIMIT - record["available"]) >> 20, int(float(wakes[0].split()[-1])) if wakes else 0


def test_what_fills_faster_than_believed_is_seen_in_milliseconds(vm):
    guarded, wakes = overshoot(vm)
    alone, none = overshoot(vm, bpf="none")
    print(f"    {guarded} MiB below the threshold when decided, {alone} MiB without the guard")
    assert wakes >= 1 and none == 0, (wakes, none)
    assert guarded < 40, "MiB, of hundreds a second"


def cpu_just_above(vm, mebibytes: int, seconds: int = 20, **headroom) -> tuple[float, int]:
    """The daemon's share of a core while memory stays so much above its hard threshold, and MiB above it."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="50Mi", **headroom))
        vm.run("sleep 4")
        limit = node.memory_available() - (mebibytes << 20)
        node.configure(kubelet_configuration(hard=str(limit), **headroom))
        vm.run("systemctl reload headroomd.service && sleep 4", check=True)
        spent = Spent(Daemon(vm))
        vm.run(f"sleep {seconds}", timeout=10 * seconds)
        share = spent.cpu_percent()
        left = (node.memory_available() - limit) >> 20
        assert not node.evictions() and mebibytes / 2 < left < mebibytes + 8, left
        return share, left


def test_living_just_above_a_threshold_costs_little(vm):
    alone, _ = cpu_just_above(vm, 80, bpf="none")
    for mebibytes in (80, 20):
        guarded, left = cpu_just_above(vm, mebibytes)
        print(f"    {guarded:.1f}% of an emulated core {left} MiB above the threshold, {alone:.1f}% without the guard")
        assert guarded <= 2, guarded
