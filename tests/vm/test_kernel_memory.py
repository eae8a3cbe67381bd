# SPDX-License-Identifier: Apache-2.0
"""Memory that the kernel holds for a pod, which memory.available does not see: with headroom.kernelMemAvailable the pod that holds it
is evicted before the kernel's OOM killer acts."""

from disk_node import configuration
from node import Node, Pod, small_bystanders

KERNELS = ("6.12",)
MEMORY = "1G"

DEFAULT = {"memory.available": "100Mi"}  # the kubelet's


def expect_the_hog_alone(vm, kind, signal, threshold="50Mi"):
    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a", check=True)
        node.start(configuration(DEFAULT, kernelMemAvailable=threshold))
        others = small_bystanders(node)
        others.append(node.run_pod(Pod("large"), "--hold 150M"))
        node.run_pod(Pod("hog"), f"--kind {kind} --rate 100M --until 4G")
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


def test_a_pod_that_fills_a_tmpfs(vm):
    """Shared memory is in memory.available. (MemAvailable leaves out the watermarks: here it would be below 50Mi first.)"""
    expect_the_hog_alone(vm, "tmpfs", "memory.available", threshold="10Mi")
