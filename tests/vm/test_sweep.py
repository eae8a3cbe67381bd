# SPDX-License-Identifier: Apache-2.0
"""The sweep on stock kernels: what BPF says is what the files say, and it costs a fraction of them."""

import json

from node import Node, Pod, kubelet_configuration

CORE = True
MEMORY = "2G"
METRICS_PORT = 9750


def test_bpf_and_files_agree_on_every_field_under_load(vm):
    result = vm.run("/opt/headroom/bin/self_check", timeout=180)
    print("    " + result.tail(14).replace("\n", "\n    "))
    assert result.code == 0, result.out


def test_the_sweep_is_an_order_of_magnitude_cheaper_than_files(vm):
    """A guard against losing the point of it; how much cheaper it is, make bench-sweep measures."""
    vm.run("ulimit -n 65536; /opt/headroom/bin/sweep --cgroups 300 --json /tmp/sweep.json", timeout=180, check=True)
    row, = json.loads(vm.get("/tmp/sweep.json"))
    print(f"    {row['bpf_ns_per_cgroup']:.0f} ns against {row['files_ns_per_cgroup']:.0f} ns a cgroup: "
          f"{row['ratio']:.0f} times")
    assert row["ratio"] >= 10, row


def test_the_daemon_reads_through_bpf_and_says_so(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        sources = node.status()["sources"]
        assert set(sources.values()) == {"bpf"}, (sources, node.journal())


def test_what_changes_for_a_sleeping_pod_is_seen(vm):
    """It is read whole in one of sixteen sweeps: a limit that is set from outside is no event for it."""
    def limit(node):
        return [line.rsplit(" ", 1)[1] for line in node.metrics("/metrics/cadvisor").splitlines()
                if line.startswith("container_spec_memory_limit_bytes") and 'pod="web"' in line]

    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi", sweepPeriod="500ms"))
        web = node.run_pod(Pod("web"), "--hold 8M")
        vm.run("sleep 3")
        before = limit(node)
        vm.run(f"echo 64M > {web.cgroup}/memory.max && echo 64M > {web.cgroup}/{web.unit}/memory.max; sleep 10", check=True)
        after = limit(node)
        assert before and str(64 << 20) not in before and str(64 << 20) in after, (before, after)


def test_hundreds_of_cgroups_come_and_go_without_a_trace(vm):
    """Births and deaths while the daemon sweeps: none stays, nothing is lost, memory does not grow."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi", sweepPeriod="200ms"))
        node.run_pod(Pod("web"), "--hold 8M")
        vm.run("sleep 2")
        before = node.status()
        vm.run("for i in $(seq 300); do mkdir /sys/fs/cgroup/headroom-test-$i; rmdir /sys/fs/cgroup/headroom-test-$i; done; "
               "sleep 1.5", timeout=120, check=True)
        after = node.status()
        # Of the tree: systemd may have started or ended a unit of its own meanwhile.
        there = int(vm.run("find /sys/fs/cgroup -type d | wc -l", check=True).out)
        assert after["cgroups"] == there, (before["cgroups"], after["cgroups"], there)
        assert "headroom-test-1" not in (node.metrics() + node.metrics("/metrics/cadvisor")).replace("headroom-test-web", "")
        grown = after["process"]["resident_bytes"] - before["process"]["resident_bytes"]
        assert grown < 4 << 20, f"{grown >> 10} KiB more resident"
