# SPDX-License-Identifier: Apache-2.0
"""Cgroups that come and go by the thousand, and those that are gone and yet hold memory: the daemon neither grows nor
lies, and loses nothing."""

import re
import time

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.1",)
MEMORY = "3G"
METRICS_PORT = 9750
ROOT = "/sys/fs/cgroup/headroom-test-churn"

# See tests/vm/workload/bury.cc.
BURY = f"""
    set -e
    mkdir -p {ROOT} /dev/shm/headroom-test
    echo +memory > /sys/fs/cgroup/cgroup.subtree_control
    echo +memory > {ROOT}/cgroup.subtree_control
    /opt/headroom/bin/bury {ROOT} /dev/shm/headroom-test 10000"""


def sample(page, name):
    """The sum over all series of that name."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(rf"{name}[{{ ]", line))


def dying(vm):
    return int(vm.run("awk '/^nr_dying_descendants/ {print $2}' /sys/fs/cgroup/cgroup.stat", check=True).out)


def test_ten_thousand_die_and_none_is_reported(vm):
    """Many more than twenty a second; and on kernels where a dead cgroup is kept by its pages, ten thousand of those."""
    with Node(vm) as node:
        try:
            node.start(kubelet_configuration(hard="100Mi"))
            node.run_pod(Pod("web"), "--hold 8M")
            vm.run("sleep 3")
            before, page = node.status(), node.metrics()
            series, lost = page.count("\n"), sample(page, "headroom_dropped_total") + sample(page, "headroom_bpf_events_lost_total")
            reads = sample(page, "headroom_sweep_duration_seconds_sum"), sample(page, "headroom_sweep_duration_seconds_count")
            began = time.monotonic()
            vm.run(BURY, timeout=500, check=True)
            rate = 10_000 / (time.monotonic() - began)
            expected = before["cgroups"] + 2  # those they were buried in and from
            # After so much it may be over its budget, and the next pass some seconds away.
            deadline = time.monotonic() + 20
            while node.status()["cgroups"] != expected and time.monotonic() < deadline:
                vm.run("sleep 0.5")
            after, page = node.status(), node.metrics()
            sweeps = sample(page, "headroom_sweep_duration_seconds_count") - reads[1]
            mean = (sample(page, "headroom_sweep_duration_seconds_sum") - reads[0]) / sweeps
            grown = after["process"]["resident_bytes"] - before["process"]["resident_bytes"]
            print(f"    {rate:.0f} a second; {dying(vm)} dying; {sweeps:.0f} passes over the cgroups, {1e3 * mean:.1f} ms each; "
                  f"{grown >> 10} KiB more resident; {page.count(chr(10)) - series} more lines on the page")
            if vm.kernel in ("6.1", "6.12"):
                assert dying(vm) > 9_000, "the test did not bury what it meant to"
            assert after["cgroups"] == expected, (before["cgroups"], after["cgroups"])
            assert "dead-" not in page, "a series of a cgroup that is gone"
            assert grown < 4 << 20, f"{grown >> 10} KiB more resident"
            assert sample(page, "headroom_dropped_total") + sample(page, "headroom_bpf_events_lost_total") == lost, "something was lost"
            assert after["counters"]["missing_readings"] == before["counters"]["missing_readings"], after["counters"]
        finally:
            vm.run(f"rm -rf /dev/shm/headroom-test; find {ROOT} {ROOT}-outside -depth -type d -exec rmdir {{}} +", timeout=120)
