# SPDX-License-Identifier: Apache-2.0
"""What a large machine has more of: possible CPUs, NUMA nodes, disks, and memory that comes while the daemon runs."""

import re
import time
from pathlib import Path

from lab import Skip
from node import Node, Pod, kubelet_configuration, unreclaimable

MEMORY = "2G"
MAX_CPUS = 256
NUMA = 8
PLAIN_DISKS = 40
MAX_MEMORY = "4G"
CMDLINE = "memhp_default_state=online"
METRICS_PORT = 9750
MIB = 1 << 20
MANIFEST = Path(__file__).resolve().parents[2] / "kubernetes/base/daemonset.yaml"


def metric(page: str, name: str) -> float:
    return float(next(line for line in page.splitlines() if line.startswith(name + " ")).split()[-1])


def io_bytes(text: str) -> int:
    """What io.stat says was read and written, of all devices."""
    return sum(int(word.partition("=")[2]) for word in text.split() if word.startswith(("rbytes=", "wbytes=")))


def test_it_works_with_many_possible_cpus_and_eight_nodes(vm):
    possible, nodes = vm.run("cat /sys/devices/system/cpu/possible /sys/devices/system/node/has_memory").out.split()
    assert nodes == f"0-{NUMA - 1}", nodes
    if vm.kernel != "6.1":
        print(f"    possible CPUs: {possible}; since Linux 6.9 those that are not there are not possible where no known hypervisor is")
    else:
        assert possible == f"0-{MAX_CPUS - 1}", possible
    with Node(vm) as node:
        began = time.monotonic()
        node.start(kubelet_configuration(hard="100Mi"))
        print(f"    READY after {time.monotonic() - began:.1f} s, resident "
              + vm.run("grep VmRSS /proc/$(pidof headroomd)/status").out.split(maxsplit=1)[1].strip())
        vm.run("sleep 3")
        status = node.status()
        assert set(status["sources"].values()) == {"bpf"}, status["sources"]
        assert all(program["loaded"] and not program["lost"] for program in status["programs"].values()), status["programs"]
        assert "moved apart" not in node.journal(), node.journal()


def test_the_daemon_sets_limit_is_enough_for_it(vm):
    """Of what it holds for each possible CPU, which is the kernel's memory; a container is charged for it as its unit is here."""
    limit = int(re.search(r"limits: \{memory: (\d+)Mi\}", MANIFEST.read_text())[1]) * MIB
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        vm.run("sleep 5")
        cgroup = "/sys/fs/cgroup" + vm.run("systemctl show -P ControlGroup headroomd", check=True).out.strip()
        stat = vm.run(f"cat {cgroup}/memory.stat", check=True).out
        kernel = int(re.search(r"^kernel (\d+)$", stat, re.M)[1])
        needed = unreclaimable(stat)
        print(f"    {needed / MIB:.1f} MiB cannot be reclaimed, {kernel / MIB:.1f} MiB of them the kernel's; limit {limit // MIB} MiB")
        assert needed < limit * 0.8, stat


def expect_that_the_guard_sees(vm, numa_node: int, room: int, workload: str, most_below: int):
    """Memory is taken of one NUMA node, faster than configured: the guard's sum has that node in it. `room` and `most_below`: MiB above
    the threshold before, and below it when the eviction is decided.
    """
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="1Mi"))
        vm.run("sleep 4")
        limit = node.memory_available() - room * MIB
        node.configure(kubelet_configuration(hard=str(limit), fastestFill="1Mi"))
        vm.run("systemctl reload headroomd.service", check=True)
        hog = node.run_pod(Pod("hog"), f"--hold 1M --after 2.4 {workload}", "NUMAPolicy=bind", f"NUMAMask={numa_node}")
        record, = node.wait_for_evictions(1)
        below = (limit - record["available"]) // MIB
        print(f"    {below} MiB below the threshold when decided")
        assert record["pod"]["name"] == "hog" and not node.alive(hog), record
        assert metric(node.metrics(), 'headroom_wakeups_total{source="guard"}') >= 1
        assert below < most_below, "MiB"


def test_the_guard_sees_a_node_that_nothing_else_uses(vm):
    expect_that_the_guard_sees(vm, NUMA - 1, room=80, workload="--until 200M", most_below=40)  # of hundreds a second


def metric_bytes(vm, key: str) -> int:
    return int(vm.run(f"awk '/^{key}:/ {{print $2}}' /proc/meminfo").out) * 1024


def expect_that_reclaim_of_one_node_is_no_shortage(vm, *properties: str):
    """A pod that may use one NUMA node of eight runs that node full: the others have memory."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi", pressure={"memory": {"threshold": "20%", "grace": "3s"}}))
        # More at once than the one thread of the kernel frees that reclaims for this node.
        node.run_script(Pod("confined"), """again() { while :; do "$@"; done 2>/dev/null; }
            again dd if=/dev/nvme0n1 of=/dev/null bs=1M &
            for number in 1 2 3 4; do again /opt/headroom/bin/workload --hold 40M --exit & done; wait""", *properties)
        vm.run("sleep 12", timeout=60)
        pod = next(pod for pod in node.status()["pods"] if pod["name"] == "confined")
        seconds = {cause: waits["ns"] / 1e9 for cause, waits in pod["stalls"].items()}
        print("    " + ", ".join(f"{cause} {value:.2f} s" for cause, value in seconds.items()))
        assert sum(seconds.values()) > 0.1, seconds
        assert seconds.get("global", 0) <= sum(seconds.values()) / 10, seconds
        assert node.status()["counters"]["evicted"] == 0 and node.alive(node.pods[0])


def test_reclaim_confined_by_a_cpuset_is_not_the_nodes_shortage(vm):
    expect_that_reclaim_of_one_node_is_no_shortage(vm, "AllowedMemoryNodes=6")


def test_reclaim_confined_by_a_policy_is_not_the_nodes_shortage(vm):
    expect_that_reclaim_of_one_node_is_no_shortage(vm, "NUMAPolicy=bind", "NUMAMask=6")


def test_forty_disks_in_one_cgroup_are_all_counted_through_bpf(vm):
    disks = [f"/dev/disk/by-id/virtio-plain{number}" for number in range(PLAIN_DISKS)]
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        pod = Pod("reader")
        reads = "".join(f"dd if={disk} of=/dev/null bs=1M count=2 iflag=direct 2>/dev/null\n" for disk in disks)
        node.run_script(pod, f"{reads} sleep 1000", "IOAccounting=yes")
        cgroup = f"{pod.cgroup}/{pod.unit}"
        vm.wait_until(f"[ $(grep -c rbytes {cgroup}/io.stat) -ge {PLAIN_DISKS} ]", timeout=60)
        vm.run("sleep 3")
        files = io_bytes(vm.run(f"cat {cgroup}/io.stat", check=True).out)
        assert files >= PLAIN_DISKS * 2 * MIB, files
        assert node.status()["sources"]["io"] == "bpf", node.status()["sources"]
        ours = sum(float(line.split()[-1]) for line in node.metrics("/metrics/cadvisor").splitlines()
                   if line.startswith(("container_fs_reads_bytes_total", "container_fs_writes_bytes_total"))
                   and pod.unit in line)
        assert ours == files, (ours, files)


def cpus_of(node) -> int:
    return int(node.status()["node"]["capacity"]["cpu"])


def test_a_cpu_that_is_plugged_in_counts(vm):
    """It is more capacity; and what a pod on it waits for and takes is seen: BPF maps have a part for each possible CPU."""
    possible, present = vm.run("cat /sys/devices/system/cpu/possible /sys/devices/system/cpu/present").out.split()
    if possible == present:
        raise Skip(f"no CPU can be plugged in: {possible} are possible, as many as there are")
    fresh = int(present.rpartition("-")[2]) + 1
    switch = f"/sys/devices/system/cpu/cpu{fresh}/online"
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="100Mi"))
        before = cpus_of(node)
        vm.plug_cpu()
        vm.wait_until(f"[ -e {switch} ] && echo 1 > {switch} && grep -qx 1 {switch}", timeout=30)
        for _ in range(40):
            if cpus_of(node) == before + 1:
                break
            vm.run("sleep 1")
        assert cpus_of(node) == before + 1, node.status()["node"]
        pinned = node.run_script(Pod("pinned"), "while :; do :; done", f"CPUAffinity={fresh}", "CPUQuota=20%")
        vm.run("sleep 10", timeout=60)
        waited = next(pod for pod in node.status()["pods"] if pod["name"] == "pinned")
        seconds = waited["throttle_waits"]["ns"] / 1e9
        print(f"    waited {seconds:.1f} s for its quota on CPU {fresh}")
        assert seconds > 2, waited
        hog = node.run_pod(Pod("hog"), "--hold 1M --until 16G", f"CPUAffinity={fresh}")
        record, = node.wait_for_evictions(1)
        assert record["pod"]["name"] == hog.name and node.alive(pinned), record
        assert set(node.status()["sources"].values()) == {"bpf"}, node.status()["sources"]
        assert node.kernel_oom_kills() == 0


def test_memory_that_is_plugged_in_during_a_ramp_counts(vm):
    """The pod that grows is evicted at the threshold of the larger machine, and not at that of the smaller."""
    with Node(vm) as node:
        before = metric_bytes(vm, "MemTotal")
        # Of eight nodes' memory the kernel keeps so much for itself (watermarks) that kernel.memAvailable may be 450 MiB lower.
        node.start(kubelet_configuration(hard="700Mi"))
        hog = node.run_pod(Pod("hog"), "--hold 600M --rate 20M --until 4G")
        vm.run("sleep 5")
        vm.plug_memory("1G", 3)
        vm.wait_until(f"[ $(awk '/^MemTotal:/ {{print $2}}' /proc/meminfo) -gt {before // 1024 + 900 * 1024} ]", timeout=30)
        record, = node.wait_for_evictions(1, timeout=200)
        print(f"    {record['available'] // MIB} MiB were available of {record['capacity'] // MIB} MiB")
        assert record["pod"]["name"] == hog.name and record["signal"] == "memory.available" and record["capacity"] > before + 900 * MIB, record
        assert 650 * MIB < record["available"] < 700 * MIB, record
        assert node.kernel_oom_kills() == 0
