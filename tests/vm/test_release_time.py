# SPDX-License-Identifier: Apache-2.0
"""How soon the memory of a victim is back that gets next to no CPU time, by a clock that counts instructions."""

import statistics

from node import Node, kubelet_configuration
from starved import evict_below, kill_starved_by_hand, starve

CORE = True
COUNTED = True
KERNELS = ("6.12",)
MEMORY = "3G"
METRICS_PORT = 9750
GOES = 3


def working_set(vm, pod):
    return int(vm.run(f"cat {pod.cgroup}/memory.current 2>/dev/null || echo 0").out)


def evicted(node, number):
    """Milliseconds from SIGKILL until all of it is back, with headroomd."""
    victim, busy = starve(node, number, 1024)
    before = working_set(node.vm, victim)
    record = evict_below(node, 300)
    assert record["pod"]["name"] == victim.name and record["outcome"] == "evicted", record
    assert record["memory_returned"] > 0.9 * before, record
    assert all(node.alive(pod) for pod in busy)
    for pod in (*busy, victim):
        node.forget(pod)
    took = record["latency"]["kill_to_exit_ms"]
    print(f"    {before >> 20} MiB back {took:.0f} ms after SIGKILL, predicted {record['predicted']['release'] >> 20} MiB in "
          f"{record['predicted']['release_ms']:.0f} ms")
    return took


def test_a_starved_victim_of_a_gigabyte_gives_it_all_back_within_a_second(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        took = [evicted(node, number) for number in range(GOES)]
        assert statistics.median(took) < 1000, took
        assert node.metric('headroom_kill_assists_total{result="limits_lifted"}') == GOES
        assert node.metric("headroom_kill_assist_processes_boosted_total") >= GOES
        node.stop()
        print(f"    nine tenths back after {kill_starved_by_hand(node, 'alone', 1024)} ms where nothing helps")
