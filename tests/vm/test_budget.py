# SPDX-License-Identifier: Apache-2.0
"""What the loop may cost (cpuBudget), by a clock that counts instructions, and what the document of all pods costs."""

from crowd import Daemon, make_pods, remove_pods
from node import PORT, Node, kubelet_configuration

CORE = True
COUNTED = True
KERNELS = ("6.12",)
MEMORY = "2G"
METRICS_PORT = 9750
PODS = 700
BUDGET = 0.05  # %
SECONDS = 60


def loop_share(vm):
    """Of a CPU, in percent, for so many seconds."""
    daemon = Daemon(vm)
    began, before = daemon.uptime(), daemon.thread_seconds()["headroomd"]
    vm.run(f"sleep {SECONDS}", timeout=4 * SECONDS)
    return 100 * (daemon.thread_seconds()["headroomd"] - before) / (daemon.uptime() - began)


def test_over_its_budget_the_daemon_reads_less_often(vm):
    with Node(vm) as node:
        make_pods(vm, PODS)
        try:
            node.start(kubelet_configuration(hard="100Mi"))
            vm.run("sleep 15")
            free = loop_share(vm)
            assert node.metric("headroom_sweep_period_seconds") == 1, node.metrics()
            node.configure(kubelet_configuration(hard="100Mi", cpuBudget=f"{BUDGET}%"))
            vm.run("systemctl reload headroomd.service && sleep 15", check=True, timeout=60)
            share, period = loop_share(vm), node.metric("headroom_sweep_period_seconds")
            print(f"    {free:.3f} % of a CPU for the loop, {share:.3f} % with a budget of {BUDGET} %: a pass every {period:.1f} s")
            assert free > 1.5 * BUDGET, free
            assert 1.2 < period < 60, period
            assert share < 1.2 * BUDGET, share
        finally:
            remove_pods(vm, PODS)


def test_the_document_of_all_pods_leaves_no_memory_behind(vm):
    with Node(vm) as node:
        make_pods(vm, PODS)
        try:
            node.start(kubelet_configuration(hard="100Mi"))
            vm.run("sleep 5; headroomctl status > /dev/null")
            daemon = Daemon(vm)
            before = daemon.rss_mib()
            size, over_http = vm.run("headroomctl status --json | wc -c; "
                                     f"curl -sS http://127.0.0.1:{PORT}/api/status | wc -c", check=True).out.split()
            after = daemon.rss_mib()
            print(f"    of {PODS} pods {size} bytes over D-Bus, {over_http} over HTTP: resident {before:.1f}, then {after:.1f} MiB")
            assert min(int(size), int(over_http)) > 500 * PODS
            assert after - before < 1, "MiB"
        finally:
            remove_pods(vm, PODS)
