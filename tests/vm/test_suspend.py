# SPDX-License-Identifier: Apache-2.0
"""A node that was suspended to idle for a while: headroomd takes that for no hang, no shortage and no reading, and guards on."""

import re

from node import Node, kubelet_configuration, small_bystanders

KERNELS = ("6.12", "newest")
MEMORY = "2G"
METRICS_PORT = 9750
SECONDS = 6  # under WatchdogSec=: where the machine is emulated CLOCK_MONOTONIC goes on meanwhile


def test_it_guards_on_after_it_was_suspended(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi", soft="420Mi", grace="30s"))
        others = small_bystanders(node)
        for run in range(3):
            slept = vm.suspend(SECONDS)
            assert slept.code == 0, slept.out
            assert int(vm.run("cat /sys/power/suspend_stats/success", check=True).out) == run + 1
            assert not node.evictions()[run:]
            record = node.evict_filler(f"hog-{run}")
            assert record["pod"]["name"] == f"hog-{run}", record
            print(f"    {SECONDS} s asleep; a pod after it evicted in {record['latency']['crossing_to_decision_ms']:.1f} ms")
        assert all(node.alive(pod) for pod in others) and node.kernel_oom_kills() == 0
        assert re.search(r"^headroom_loop_stalls_total 0$", node.metrics(), re.M)
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "0"
