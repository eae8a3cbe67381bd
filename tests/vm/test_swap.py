# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out while there is swap: on a disk, compressed in memory, and given to the machine on the way. The kernel
swaps before the working set is high, so memory.available counts what swap gains and costs; swap.available has a threshold in
some of these tests only. And pods that take too much of it, or that must not wait for a disk (podSwap)."""

import json
import re
from contextlib import contextmanager

from disk_node import configuration
from lab import Skip
from node import Node, Pod, small_bystanders

KERNELS = ("6.1", "6.12", "newest")
MEMORY = "1G"
SWAP = "512M"
METRICS_PORT = 9750
MIB = 1 << 20

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


def test_a_pod_within_its_request_keeps_its_pace_while_a_hog_fills_swap(vm):
    """Its pages go to the disk as well, and it needs some of them for each request. The hog goes when it begins to wait, and not
    when swap is full: then it answers hardly any of them in time."""
    with Node(vm, replayed=True) as node:
        node.start(configuration(DEFAULT))
        others = small_bystanders(node)
        served = node.run_pod(Pod("served", "burstable", {"memory": "300Mi"}), "--hold 220M --probe 30", "StandardOutput=file:/run/answers")
        vm.wait_until(f"[ $(cat {served.cgroup}/memory.current) -gt {215 * MIB} ]", timeout=30)
        node.run_pod(Pod("hog"), RAMP)
        expect_the_hog_alone(node, others)
        vm.wait_until(f"! systemctl is-active --quiet {served.unit}", timeout=60)
        *_, in_time = vm.run("cat /run/answers; rm /run/answers", check=True).out.split()
        print(f"    {100 * float(in_time):.0f} % of its requests answered within 100 ms")
        assert float(in_time) > 0.7


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


SWAP_FILES = ("memory.swap.high", "memory.zswap.writeback")


def read(vm, path):
    return vm.run(f"cat {path}", check=True).out.strip()


def swap_changes(node):
    listed = json.loads(node.vm.run("headroomctl changes --json", check=True).out)["changes"]
    return {(each["setting"], each["object"], each["current"], each["original"]) for each in listed if each["setting"] in SWAP_FILES}


def swap_out(vm, pod, mebibytes):
    """Less than it holds: memory.reclaim fails with EAGAIN if it cannot take all of it."""
    vm.run(f"echo {mebibytes}M > {pod.cgroup}/memory.reclaim", timeout=60)
    return int(read(vm, f"{pod.cgroup}/memory.swap.current"))


def memory_stat(vm, pod, key):
    return int(vm.run(f"awk '$1 == \"{key}\" {{print $2}}' {pod.cgroup}/memory.stat", check=True).out)


def stall_seconds(node, name):
    stalls = next(pod for pod in node.status()["pods"] if pod["name"] == name)["stalls"]
    return {cause: waits["ns"] / 1e9 for cause, waits in stalls.items()}


def held(pod):
    """Shell's arithmetic: memory and swap, each page once."""
    in_both = f"$(awk '$1 == \"swapcached\" {{print $2}}' {pod.cgroup}/memory.stat)"
    return f"$(($(cat {pod.cgroup}/memory.current) + $(cat {pod.cgroup}/memory.swap.current) - {in_both}))"


def grown(vm, pod, seconds):
    """MiB of memory and swap that it took in this time."""
    before, after = vm.run(f"echo {held(pod)}; sleep {seconds}; echo {held(pod)}", timeout=seconds + 30, check=True).out.split()
    return (int(after) - int(before)) / MIB


def test_a_pod_that_takes_too_much_swap_is_slowed_down_and_no_other_is(vm):
    """Two pods grow alike, both with 150 MiB in swap; one is within its request. The waits are the pod's own: nothing is evicted."""
    with Node(vm, replayed=True) as node:
        vm.run("swapon --show | grep -q .", check=True)
        high = int(0.2 * 1024 * int(vm.run("awk '/^SwapTotal:/{print $2}' /proc/meminfo", check=True).out)) // 65536 * 65536
        node.start(configuration(DEFAULT, podSwap={"high": "20%"}, pressure={"memory": {"threshold": "20%", "grace": "3s"}}))
        grows = "--hold 200M --after 20 --rate 4M --until 400M"
        hog = node.run_pod(Pod("hog"), grows)
        within = node.run_pod(Pod("within", "burstable", {"memory": "500Mi"}), grows)
        for pod in (hog, within):
            vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {195 * MIB} ]", timeout=60)
        vm.wait_until(f"[ $(cat {hog.cgroup}/memory.swap.high) = {high} ]", timeout=10)
        assert read(vm, f"{within.cgroup}/memory.swap.high") == "max"
        for pod in (hog, within):
            assert swap_out(vm, pod, 150) > 1.2 * high, "beyond 18% above it the kernel's delay is the longest"
        vm.wait_until(f"[ {held(within)} -gt {212 * MIB} ]", timeout=60)
        slow, quick = grown(vm, hog, 10), grown(vm, within, 10)
        stalls = stall_seconds(node, "hog")
        print(f"    {high >> 20} MiB of swap: {slow:.1f} MiB grown in 10 s above it, {quick:.1f} MiB by the other; waits {stalls}")
        assert quick > 25 and slow < quick / 3, (slow, quick)
        assert stalls.get("high", 0) > 3, stalls
        assert stalls.get("refault", 0) + stalls.get("global", 0) < stalls["high"] / 4, stalls
        assert (SWAP_FILES[0], hog.cgroup.removeprefix("/sys/fs/cgroup"), str(high), "max") in swap_changes(node)
        vm.wait_until("curl -sS http://127.0.0.1:9750/metrics | grep -q '^headroom_swap_throttles_total [1-9]'", timeout=10)
        assert "headroom_swap_limited_pods 1" in node.metrics()
        assert not node.evictions() and not any(node.status()["conditions"].values()) and node.kernel_oom_kills() == 0
        assert node.alive(hog) and node.alive(within)


def test_a_page_in_memory_and_in_swap_counts_once(vm):
    """A pod within its request reads back what it swapped. The pages keep their places in swap; it is not above its request for that."""
    with Node(vm, replayed=True) as node:
        vm.run("swapon --show | grep -q .", check=True)
        node.start(configuration(DEFAULT, podSwap={"high": "10%"}, metrics={"exclude": []}))
        pod = node.run_pod(Pod("within", "burstable", {"memory": "200Mi"}), "--hold 150M --random --probe 120")
        vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {145 * MIB} ]", timeout=60)
        swap_out(vm, pod, 100)
        vm.wait_until(f"awk '$1 == \"swapcached\" && $2 > {80 * MIB} {{ok = 1}} END {{exit !ok}}' {pod.cgroup}/memory.stat", timeout=60)
        vm.run("sleep 3")
        assert read(vm, f"{pod.cgroup}/memory.swap.high") == "max" and not swap_changes(node)
        seen, swap = memory_stat(vm, pod, "swapcached"), int(read(vm, f"{pod.cgroup}/memory.swap.current"))
        print(f"    {swap >> 20} MiB in swap, {seen >> 20} MiB of them in memory as well")
        said = re.findall(r'^headroom_cgroup_memory_swapcached_bytes\{[^}]*pod="within"[^}]*\} (\S+)', node.metrics(), re.M)
        assert said and all(abs(float(each) - seen) < 8 * MIB for each in said), (said, seen)
        assert node.alive(pod) and not node.evictions()


def test_what_protected_pods_swap_stays_in_zswap(vm):
    """Random pages, which zswap compresses badly or not at all: those of a protected pod stay in memory, the other pod's go to the disk.

    Since 6.18 the kernel refuses what does not compress: then it stays as it is, and has only its place in swap (swapcached)."""
    if vm.run("test -e /sys/module/zswap/parameters/enabled").code != 0:
        raise Skip("the kernel has no zswap")
    enabled = read(vm, "/sys/module/zswap/parameters/enabled")
    try:
        vm.run("echo Y > /sys/module/zswap/parameters/enabled", check=True)
        with Node(vm) as node:
            vm.run("swapon --show | grep -q .", check=True)
            node.start(configuration(DEFAULT, podSwap={"zswapWriteback": False, "protectedPriority": 1000}))
            bank = node.run_pod(Pod("bank", "burstable", {"memory": "50Mi"}, priority=1000), "--hold 150M --random")
            batch = node.run_pod(Pod("batch", "burstable", {"memory": "50Mi"}), "--hold 150M --random")
            for pod in (bank, batch):
                vm.wait_until(f"[ $(cat {pod.cgroup}/memory.current) -gt {145 * MIB} ]", timeout=60)
            for cgroup in (bank.cgroup, f"{bank.cgroup}/{bank.unit}"):
                vm.wait_until(f"[ $(cat {cgroup}/memory.zswap.writeback) = 0 ]", timeout=10)
            assert read(vm, f"{batch.cgroup}/memory.zswap.writeback") == "1"
            kept, out = swap_out(vm, bank, 100), swap_out(vm, batch, 100)
            stored, held = (memory_stat(vm, bank, key) for key in ("zswapped", "swapcached"))
            print(f"    random pages: {kept >> 20} MiB swapped by the protected pod, {stored >> 20} MiB of it in zswap and {held >> 20} MiB in memory;",
                  f"{out >> 20} MiB by the other")
            assert 80 * MIB < kept < stored + held + 5 * MIB, (kept, stored, held)
            assert 80 * MIB < out - memory_stat(vm, batch, "swapcached"), out
            assert "headroom_zswap_kept_pods 1" in node.metrics()
            assert node.alive(bank) and node.alive(batch) and not node.evictions()
    finally:
        vm.run(f"echo {enabled} > /sys/module/zswap/parameters/enabled", check=True)


def test_no_swap_setting_is_left_when_the_daemon_reloads_stops_or_dies(vm):
    with Node(vm) as node:
        vm.run("swapon --show | grep -q .", check=True)
        wanted = configuration(DEFAULT, podSwap={"high": "25%", "zswapWriteback": False})
        node.start(wanted)
        hog, bank = node.run_pod(Pod("hog"), "--hold 20M"), small_bystanders(node)[0]
        files = {f"{hog.cgroup}/memory.swap.high": "max", f"{bank.cgroup}/memory.zswap.writeback": "1"}
        files = {file: original for file, original in files.items() if vm.run(f"test -e {file}").code == 0}  # zswap: 6.8
        assert files

        def wait_until_all(changed):
            for file, original in files.items():
                vm.wait_until(f"[ $(cat {file}) {'!=' if changed else '='} {original} ]", timeout=10)

        wait_until_all(changed=True)
        node.configure(configuration(DEFAULT))
        vm.run("systemctl reload headroomd.service", check=True)
        wait_until_all(changed=False)
        assert not swap_changes(node)
        node.configure(wanted)
        vm.run("systemctl reload headroomd.service", check=True)
        wait_until_all(changed=True)
        node.stop()
        assert all(read(vm, file) == original for file, original in files.items())
        assert vm.run("test -e /run/headroom/pod-swap.json").code == 1
        vm.run("systemctl start headroomd.service", check=True)
        wait_until_all(changed=True)
        vm.run("systemctl mask --runtime headroomd.service; systemctl kill -s KILL headroomd.service; sleep 1", check=True)
        assert all(read(vm, file) != original for file, original in files.items()), "a killed daemon restores nothing itself"
        assert {setting for setting, *_ in swap_changes(node)} == {file.rsplit("/", 1)[1] for file in files}
        vm.run("systemctl unmask headroomd.service", check=True)
        node.configure(configuration(DEFAULT))
        vm.run("systemctl reset-failed headroomd.service; systemctl start headroomd.service", check=True)
        wait_until_all(changed=False)
        assert not swap_changes(node)
