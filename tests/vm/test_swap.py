# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out while there is swap: on a disk, compressed in memory, and given to the machine on the way. The kernel
swaps before memory.available is low, so that it is swap.available which shows it."""

from disk_node import configuration
from node import Node, Pod, small_bystanders

KERNELS = ("6.12",)
MEMORY = "1G"
SWAP = "512M"
METRICS_PORT = 9750

HARD = {"memory.available": "100Mi", "swap.available": "15%"}
RAMP = "--random --rate 100M --until 4G"


def expect_the_hog_alone(node, others):
    record, = node.wait_for_evictions(1, timeout=120)
    print(f"    {record['signal']}: {record['usage'] >> 20} MiB used, {record['memory_returned'] >> 20} MiB came back")
    assert record["pod"]["name"] == "hog" and record["outcome"] == "evicted", record
    node.vm.run("sleep 2")
    assert len(node.evictions()) == 1 and all(node.alive(pod) for pod in others)
    assert node.kernel_oom_kills() == 0
    return record


def test_a_ramp_while_the_disk_has_swap(vm):
    with Node(vm, replayed=True) as node:
        vm.run("swapon --show | grep -q .", check=True)
        node.start(configuration(HARD))
        others = small_bystanders(node)
        node.run_pod(Pod("hog"), RAMP)
        expect_the_hog_alone(node, others)


def test_swap_that_is_added_while_memory_runs_out(vm):
    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a", check=True)
        try:
            node.start(configuration(HARD))
            others = small_bystanders(node)
            node.run_pod(Pod("hog"), RAMP)
            vm.wait_until("[ $(awk '/^MemAvailable:/{print $2}' /proc/meminfo) -lt 350000 ]")
            vm.run("swapon /dev/disk/by-id/virtio-swap", check=True)
            expect_the_hog_alone(node, others)
        finally:
            node.leave()
            vm.run("swapon /dev/disk/by-id/virtio-swap 2>/dev/null")


def test_swap_that_is_compressed_in_memory(vm):
    """What is swapped out takes memory all the same, and nearly as much as before."""
    with Node(vm, replayed=True) as node:
        vm.run("""swapoff -a; modprobe zram num_devices=1 && echo 600M > /sys/block/zram0/disksize &&
            mkswap /dev/zram0 > /dev/null && swapon -p 100 /dev/zram0""", check=True)
        try:
            node.start(configuration(HARD))
            others = small_bystanders(node)
            node.run_pod(Pod("hog"), RAMP)
            expect_the_hog_alone(node, others)
        finally:
            node.leave()
            vm.run("swapoff -a; echo 1 > /sys/block/zram0/reset; rmmod zram; swapon /dev/disk/by-id/virtio-swap")
