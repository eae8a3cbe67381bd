# SPDX-License-Identifier: Apache-2.0
"""Pods at their own memory.max: page cache that is reclaimed before their tasks must, and limits that are raised while the
node has room and lowered again; and cold memory of pods over their requests."""

import re

import limit_soak
from node import Node, Pod, kubelet_configuration

KERNELS = ("6.1", "6.12", "newest")
COUNTED = True
MEMORY = "1G"
SWAP = "512M"

MIB = 1 << 20
FILE = "/var/tmp/headroom-read"
# Reads a sparse file again and again, RATE MiB a second, and says how much it has read.
READER = """exec /opt/headroom/bin/python3 -c '
import os, time
fd = os.open("{file}", os.O_RDONLY); size = os.fstat(fd).st_size; at = done = 0; begun = time.monotonic()
while True:
    done += len(os.pread(fd, 1 << 20, at)); at = (at + (1 << 20)) % size
    open("/run/reader", "w").write("%d %f" % (done, time.monotonic() - begun))
    time.sleep(max(0, done / ({rate} << 20) - (time.monotonic() - begun)))'"""


def event(vm, cgroup, name):
    return int(vm.run(f"awk '/^{name} /{{print $2}}' {cgroup}/memory.events", check=True).out)


def container(pod):
    return f"{pod.cgroup}/{pod.unit}"


def read_at(node, rate, seconds):
    """MiB a second that were read, and how often the limit was reached in that time, after a moment."""
    vm = node.vm
    pod = node.run_script(Pod("reader", "burstable", {"memory": "64Mi"}), READER.format(file=FILE, rate=rate), "MemoryMax=128M")
    vm.wait_until(f"[ $(cat {container(pod)}/memory.current) -gt {100 * MIB} ]", timeout=60)
    before, began = event(vm, container(pod), "max"), vm.run("cat /run/reader", check=True).out.split()
    vm.run(f"sleep {seconds}", timeout=seconds + 60)
    after, ended = event(vm, container(pod), "max"), vm.run("cat /run/reader", check=True).out.split()
    node.forget(pod)
    return (int(ended[0]) - int(began[0])) / MIB / (float(ended[1]) - float(began[1])), after - before


def test_a_reader_does_not_reach_its_limit(vm):
    vm.run(f"swapoff -a; truncate -s 600M {FILE}", check=True)
    try:
        with Node(vm) as node:
            node.start(kubelet_configuration(hard="60Mi", podLimits={"reclaim": False}))
            rate, reached = read_at(node, 50, 6)
            print(f"    without: {rate:.0f} MiB/s, events max {reached}")
            assert reached > 0
            node.stop()
            node.start(kubelet_configuration(hard="60Mi", podLimits={"reclaim": True}))
            for wanted in (20, 50):
                rate, reached = read_at(node, wanted, 8)
                print(f"    with background reclaim: {rate:.0f} MiB/s, events max {reached}")
                assert reached == 0 and rate > wanted / 2
            assert node.status()["counters"]["pod_memory"]["background_reclaimed"] > 0
            assert node.evictions() == [] and node.kernel_oom_kills() == 0
    finally:
        vm.run(f"rm -f {FILE}; swapon -a; swapon /dev/disk/by-id/virtio-swap 2>/dev/null; true")


RESCUE = {"podLimits": {"rescue": {"ceiling": "150%", "margin": "5%"}}}


def test_pods_outgrow_their_limits_while_the_node_has_room(vm):
    """A hundred, at 50 MiB/s to full speed: each lives, none has more than the ceiling, and what was planned is planned again
    from a recording."""
    vm.run("swapoff -a", check=True)
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="100Mi", **RESCUE))
        lived, killed = 0, node.kernel_oom_kills()
        for round_, rate in enumerate(("--rate 50M", "--rate 100M", "--rate 200M", "", "") * 5):
            pods = [node.run_pod(Pod(f"grows-{round_}-{i}", "burstable", {"memory": "40Mi"}),
                                 f"--hold 40M --after 3 {rate} --until 84M", "MemoryMax=64M") for i in range(4)]
            vm.run("sleep 7", timeout=60)
            for pod in pods:
                lived += node.alive(pod)
                limit = int(vm.run(f"cat {container(pod)}/memory.max", check=True).out) if node.alive(pod) else 0
                assert limit <= 96 * MIB, limit
            if round_ == 0:
                changes = vm.run("headroomctl changes", check=True).out
                assert "memory.max" in changes and str(64 * MIB) in changes, changes
                assert "raised limits:" in vm.run("headroomctl status", check=True).out
            for pod in pods:
                node.forget(pod)
        counts = node.status()["counters"]["pod_memory"]
        print(f"    {lived} of 100 lived; {counts}; OOM kills {node.kernel_oom_kills() - killed}")
        assert lived == 100 and node.kernel_oom_kills() == killed
        assert node.evictions() == []
        again, = node.decide_again()
        print(f"    {again.out.strip()}")
        assert again.code == 0 and re.search(r"^[1-9]\d+ plans for pods near their memory limits: the same$", again.out, re.M), again


def test_a_pod_beyond_its_ceiling_dies_of_its_limit(vm):
    vm.run("swapoff -a", check=True)
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi", **RESCUE))
        pod = node.run_pod(Pod("leaks", "burstable", {"memory": "40Mi"}), "--hold 40M --after 2 --rate 50M --until 300M",
                           "MemoryMax=64M")
        vm.wait_until(f"! systemctl is-active --quiet {pod.unit}", timeout=60)
        assert node.kernel_oom_kills() >= 1 and node.evictions() == []


def test_limits_are_lowered_again_without_a_kill(vm):
    """A short form of `make soak-limits`."""
    row = limit_soak.run(vm, pods=6, lowerings=1000, seconds=45)
    print(f"    {row}")
    assert not limit_soak.faults(row, lowerings=30), row


def test_cold_memory_is_pushed_out_and_working_memory_stays(vm):
    with Node(vm) as node:
        vm.run("swapon /dev/disk/by-id/virtio-swap 2>/dev/null; swapon --show | grep -q .", check=True)
        node.start(kubelet_configuration(hard="50Mi", coldMemory={"below": "70%"}))
        cold = node.run_pod(Pod("cold", "burstable", {"memory": "50Mi"}), "--hold 350M")
        vm.wait_until(f"[ $(cat {cold.cgroup}/memory.swap.current) -gt {100 * MIB} ]", timeout=60)
        vm.run("sleep 5", timeout=30)
        counts = node.status()["counters"]["pod_memory"]
        kept = int(vm.run(f"cat {cold.cgroup}/memory.current", check=True).out)
        print(f"    cold: {kept >> 20} MiB stay; pushed out {counts['cold_pushed'] >> 20} MiB, came back {counts['cold_returned'] >> 20} MiB")
        assert counts["cold_returned"] < counts["cold_pushed"] / 4, counts
        assert "cold memory:" in vm.run("headroomctl status", check=True).out
        assert node.alive(cold) and node.evictions() == []
        node.forget(cold)
        node.stop()
        node.start(kubelet_configuration(hard="50Mi", coldMemory={"below": "70%"}))
        busy = node.run_pod(Pod("busy", "burstable", {"memory": "50Mi"}), "--hold 350M --churn")
        vm.wait_until(f"[ $(cat {busy.cgroup}/memory.current) -gt {300 * MIB} ]", timeout=60)
        vm.run("sleep 15", timeout=60)
        counts = node.status()["counters"]["pod_memory"]
        print(f"    in use: pushed out {counts['cold_pushed'] >> 20} MiB, came back {counts['cold_returned'] >> 20} MiB in 15 s")
        assert counts["cold_pushed"] < 150 * MIB, counts
        assert node.alive(busy) and node.evictions() == []


def test_cold_memory_is_pushed_no_further_than_memory_swap_high(vm):
    """Where podSwap slows a pod down, coldMemory does not bring it there."""
    with Node(vm) as node:
        vm.run("swapon /dev/disk/by-id/virtio-swap 2>/dev/null; swapon --show | grep -q .", check=True)
        node.start(kubelet_configuration(hard="50Mi", coldMemory={"below": "90%", "swappiness": 100}, podSwap={"high": "20%"}))
        pods = [node.run_pod(Pod(name, "burstable", {"memory": "20Mi"}), "--hold 250M") for name in ("cold", "colder")]
        files = " ".join(f"{pod.cgroup}/memory.swap.current" for pod in pods)
        highs = [int(vm.run(f"until h=$(cat {pod.cgroup}/memory.swap.high) && [ $h != max ]; do sleep 0.2; done; echo $h", timeout=30).out) for pod in pods]
        seen = vm.run(f"for i in $(seq 60); do cat {files} | paste -sd' '; sleep 0.5; done", timeout=90, check=True).out
        most = [max(each) for each in zip(*(map(int, line.split()) for line in seen.splitlines()))]
        print(f"    memory.swap.high {[high >> 20 for high in highs]} MiB, most in swap {[each >> 20 for each in most]} MiB")
        for pod, high, swap in zip(pods, highs, most):
            throttled = int(vm.run(f"awk '/^high /{{print $2}}' {pod.cgroup}/memory.swap.events", check=True).out)
            assert throttled == 0 and 3 / 4 * high < swap < high, (pod.name, throttled, swap, high)
        assert all(node.alive(pod) for pod in pods) and node.evictions() == []
