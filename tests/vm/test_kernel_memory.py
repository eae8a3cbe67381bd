# SPDX-License-Identifier: Apache-2.0
"""Memory that the kernel holds for a pod, which memory.available does not see: the pod that holds it is evicted, by the default
configuration, before the kernel's OOM killer acts."""

from disk_node import configuration
from node import Node, Pod, small_bystanders

KERNELS = ("6.12", "newest")  # since 6.14 page tables are freed later than their process
MEMORY = "1G"



def expect_the_hog_alone(vm, kind, signal, hard="100Mi", left=None):  # the kubelet's default
    """`left`: of memory that is not this one, the hog takes all but so many MiB first."""
    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a", check=True)
        node.start(configuration({"memory.available": hard}))
        others = small_bystanders(node)
        others.append(node.run_pod(Pod("large"), "--hold 150M"))
        vm.wait_until(f"[ $(cat {others[-1].cgroup}/memory.current) -gt {150 << 20} ]", timeout=60)
        held = f"--hold {node.holding_to_leave(left)}M " if left else ""
        node.run_pod(Pod("hog"), f"{held}--kind {kind} --rate 100M --until 4G")
        record, = node.wait_for_evictions(1, timeout=120)
        print(f"    {kind}: {record['signal']} {record['available'] >> 20} MiB, {record['usage'] >> 20} MiB used, "
              f"{record['memory_returned'] >> 20} MiB came back")
        assert record["pod"]["name"] == "hog" and record["outcome"] == "evicted", record
        assert record["signal"] == signal, record
        vm.run("sleep 2")
        assert len(node.evictions()) == 1 and all(node.alive(pod) for pod in others)
        assert node.kernel_oom_kills() == 0


def test_a_pod_that_fills_pipes(vm):
    expect_the_hog_alone(vm, "pipes", "kernel.memAvailable")


def test_a_pod_that_fills_sockets(vm):
    expect_the_hog_alone(vm, "sockets", "kernel.memAvailable")


def test_a_pod_that_fills_page_tables(vm):
    expect_the_hog_alone(vm, "page-tables", "kernel.memAvailable")


def test_a_pod_that_fills_dentries(vm):
    """Each takes a call, so the whole of memory would take minutes in the emulated lab."""
    expect_the_hog_alone(vm, "dentries", "kernel.memAvailable", left=250)


def test_a_pod_that_fills_a_tmpfs(vm):
    """Shared memory is in memory.available, and a threshold well above what the kernel holds is crossed first."""
    expect_the_hog_alone(vm, "tmpfs", "memory.available", hard="350Mi")


def test_a_pod_that_fills_its_own_memory(vm):
    """Of 1 GiB the kernel's OOM killer leaves 100 MiB and more: by memory.available alone it acted first."""
    expect_the_hog_alone(vm, "anonymous", "kernel.memAvailable")


def test_page_cache_that_memory_min_keeps(vm):
    """It is inactive, so memory.available counts it; the kernel does not reclaim it."""
    with Node(vm) as node:
        vm.run("swapoff -a; systemctl set-property --runtime kept.slice MemoryMin=300M", check=True)
        vm.spawn("head -c 250M /dev/zero > /var/tmp/kept; sync /var/tmp/kept; exec sleep infinity", unit="headroom-test-kept.service",
                 slice="kept.slice")
        try:
            vm.wait_until("[ $(cat /sys/fs/cgroup/kept.slice/memory.current) -gt 250000000 ]")
            node.start(configuration({"memory.available": "100Mi"}))
            node.run_pod(Pod("hog"), "--rate 100M --until 4G")
            record, = node.wait_for_evictions(1, timeout=120)
            print(f"    {record['signal']} {record['available'] >> 20} MiB")
            assert (record["pod"]["name"], record["signal"]) == ("hog", "kernel.memAvailable"), record
            assert node.kernel_oom_kills() == 0
        finally:
            vm.run("systemctl stop headroom-test-kept.service kept.slice; systemctl revert kept.slice; rm -f /var/tmp/kept; true")
