# SPDX-License-Identifier: Apache-2.0
"""The four sources decide alike: BPF, BPF's events beside files, and files alone, on one node, one after the other."""

from node import Node, Pod, kubelet_configuration

MEMORY = "2G"


def who_goes(vm, bpf):
    """The same story whatever it is read with: its evictions, and what the daemon then says of itself."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi", bpf=bpf))
        node.run_pod(Pod("bank", "guaranteed", {"memory": "256Mi", "cpu": "100m"}, {"memory": "256Mi", "cpu": "100m"}),
                     "--hold 160M", "MemoryMax=256M")
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 150M")
        node.run_pod(Pod("batch", "burstable", {"memory": "50Mi"}), "--hold 250M")
        node.run_pod(Pod("hog"), "--hold 1M --after 2 --until 4G")
        node.wait_for_evictions(1)
        vm.run("sleep 3")
        records = node.evictions()
        print(f"    {bpf}: " + ", ".join(
            f"{record['pod']['name']} in {record['latency']['decision_to_signal_ms']:.1f} ms" for record in records))
        assert node.kernel_oom_kills() == 0, node.journal()
        if bpf == "all":
            major, minor = map(int, vm.run("uname -r", check=True).out.split(".")[:2])
            passes = "without cgroup_mutex, between decisions of updated cgroups alone" if (major, minor) >= (6, 10) else "under cgroup_mutex"
            assert f"passes {passes}" in node.journal(), node.journal()
        return [record["pod"]["name"] for record in records], node.status(), node.metrics()


def test_the_same_pod_goes_whatever_the_node_is_read_with(vm):
    for bpf in ("all", "events", "none"):
        went, status, page = who_goes(vm, bpf)
        assert went == ["hog"], (bpf, went)
        from_bpf = {"bpf"} if bpf == "all" else {"files"}
        assert set(status["sources"].values()) == from_bpf, (bpf, status["sources"])
        loaded = {name: program["loaded"] for name, program in status["programs"].items()}
        assert set(loaded.values()) == {bpf != "none"}, (bpf, loaded)
        assert ('headroom_source{group="memory_usage",source="bpf"} 1' in page) == (bpf == "all"), bpf


def test_pressure_brings_a_look_forward(vm):
    """Thrash far above the threshold: no pod goes, and the loop was woken for it."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="50Mi", bpf="none"))
        pod = node.run_script(Pod("reader"), "while :; do dd if=/dev/nvme0n1 of=/dev/null bs=1M 2>/dev/null; done", "MemoryMax=32M")
        vm.run("sleep 8")
        woken = next(line for line in node.metrics().splitlines() if line.startswith('headroom_wakeups_total{source="pressure"}'))
        print("    " + woken)
        assert int(woken.split()[-1]) >= 1, woken
        assert node.alive(pod) and not node.evictions()
