# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out while there is swap: on a disk, compressed in memory, and given to the machine on the way. The kernel
swaps before the working set is high, so memory.available counts what swap gains and costs; swap.available has a threshold in
some of these tests only."""

from contextlib import contextmanager

from disk_node import configuration
from node import Node, Pod, small_bystanders

KERNELS = ("6.12",)
MEMORY = "1G"
SWAP = "512M"
METRICS_PORT = 9750

HARD = {"memory.available": "100Mi", "swap.available": "15%"}
RAMP = "--random --rate 100M --until 4G"
DEFAULT = {"memory.available": "100Mi"}  # the kubelet's


@contextmanager
def zram(vm, size):
    """The machine's only swap, until the end."""
    vm.run(f"""swapoff -a; modprobe zram num_devices=1 && echo {size} > /sys/block/zram0/disksize &&
        mkswap /dev/zram0 > /dev/null && swapon -p 100 /dev/zram0""", check=True)
    try:
        yield
    finally:
        vm.run("swapoff -a; echo 1 > /sys/block/zram0/reset; rmmod zram; swapon /dev/disk/by-id/virtio-swap", timeout=60)


def swapped(vm):
    return int(vm.run("awk '/^SwapTotal:/{t=$2} /^SwapFree:/{f=$2} END{print t-f}' /proc/meminfo", check=True).out) >> 10


def expect_room(node):
    swap = node.status()["swap"]
    print(f"    with swap: { {key: value >> 20 if isinstance(value, int) and not isinstance(value, bool) else value for key, value in swap.items()} }")
    assert swap["in_force"] and swap["available"] <= swap["kubelet"], swap
    return swap


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
    with zram(vm, "600M"), Node(vm, replayed=True) as node:
        node.start(configuration(HARD))
        others = small_bystanders(node)
        node.run_pod(Pod("hog"), RAMP)
        expect_the_hog_alone(node, others)


def hog_on_zram(vm, workload):
    """Half of memory is zram, and the configuration is the kubelet's default: the hog alone is evicted, before the kernel acts."""
    with zram(vm, "500M"), Node(vm, replayed=True) as node:
        node.start(configuration(DEFAULT))
        others = small_bystanders(node)
        node.run_pod(Pod("hog"), workload)
        record = expect_the_hog_alone(node, others)
        assert record["signal"] == "memory.available", record
        expect_room(node)


def test_a_hog_of_random_pages_on_zram(vm):
    hog_on_zram(vm, RAMP)


def test_a_hog_of_compressible_pages_on_zram(vm):
    hog_on_zram(vm, "--rate 100M --until 4G")


def test_a_hog_as_fast_as_it_can_on_zram(vm):
    hog_on_zram(vm, "--random --until 4G")


def test_a_hog_on_a_disk_with_the_default_configuration(vm):
    with Node(vm, replayed=True) as node:
        node.start(configuration(DEFAULT))
        others = small_bystanders(node)
        node.run_pod(Pod("hog"), RAMP)
        assert expect_the_hog_alone(node, others)["signal"] == "memory.available"


def test_cold_pages_in_zram_evict_no_pod(vm):
    """More is held than there is memory, and the coldest of it stays in swap."""
    with zram(vm, "500M"), Node(vm, replayed=True) as node:
        node.start(configuration(DEFAULT))
        others = small_bystanders(node)
        cold = node.run_pod(Pod("cold"), f"--hold 1M --rate 50M --until {node.holding_to_leave(0) + 80}M")
        vm.wait_until("[ $(awk '/^SwapTotal:/{t=$2} /^SwapFree:/{f=$2} END{print t-f}' /proc/meminfo) -gt 100000 ]", timeout=60)
        vm.run("sleep 60", timeout=90)
        swap = expect_room(node)
        assert swap["compressed"] >> 20 > 50 and swapped(vm) > 50, swap
        assert not node.evictions() and node.kernel_oom_kills() == 0
        assert all(node.alive(pod) for pod in [cold, *others])
        assert "headroom_memory_room_bytes " in node.metrics()
