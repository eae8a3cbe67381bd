# SPDX-License-Identifier: Apache-2.0
"""What headroomd talks to stops answering, one after the other: the journal, the bus, its readers, a mount. Its loop waits for none."""

import re
import statistics

from node import ETC, Node, Pod, kubelet_configuration, small_bystanders

KERNELS = ("6.12",)
MEMORY = "2G"
METRICS_PORT = 9750
RUNS = 8
# The bound of the calm case (bench-evict), from the last sample above the threshold to SIGKILL: an upper bound of the latency.
LONGEST_MS = 20
HUNG = "/mnt/hung"
DROP_INS = f"{ETC}/headroom.yaml.d"


def evict(node, name) -> float:
    """One eviction under the fastest filler there is; milliseconds from the last clear sample to SIGKILL, by the flight recording."""
    record = node.evict_filler(name)
    assert record["pod"]["name"] == name, record
    return record["latency"]["crossing_to_decision_ms"] + record["latency"]["decision_to_signal_ms"]


def quantiles(latencies) -> tuple[float, float]:
    return statistics.median(latencies), max(latencies)


def stopped_unit(vm, unit):
    vm.run(f"systemctl kill -s STOP {unit}", check=True)
    return lambda: vm.run(f"systemctl kill -s CONT {unit}", check=True)


def stopped_readers(vm):
    """Of a recording, of a scrape and of the audit log's signals: each has begun to read, and is stopped."""
    unit = "headroom-test-readers.service"
    vm.spawn("""/opt/headroom/bin/headroomctl record --for 10m -o - | { head -c 1 >/run/reader-began; sleep 1000; } &
        curl -sS --limit-rate 1 http://127.0.0.1:9750/metrics >/dev/null &
        busctl monitor io.headroom.Headroom1 >/dev/null & wait""", unit=unit)
    vm.wait_until("test -s /run/reader-began")
    vm.run(f"systemctl kill -s STOP {unit}", check=True)
    return lambda: vm.run(f"systemctl kill -s KILL {unit}; rm -f /run/reader-began; true")


def hung(vm, path):
    """No call about a file of this path returns."""
    unit = f"headroom-test-hang-{path.rpartition('/')[2]}.service"
    vm.spawn(f"exec /opt/headroom/bin/hang {path}", unit=unit)
    vm.wait_until(f"grep -q ' {path} fuse ' /proc/mounts")
    return lambda: vm.run(f"systemctl kill -s KILL {unit}; umount -l {path}; true")


def hung_mount(vm):
    """imagefs is below it: statvfs() of it never returns."""
    resume = hung(vm, HUNG)
    # Two readings are due meanwhile: the thread hangs before the first eviction.
    vm.run("sleep 2")
    return resume


def hung_configuration(node):
    """The drop-ins of the configuration, at a reload. Pods are described before: as long as it hangs, no manifest is read either."""
    for run in range(RUNS):
        pod = Pod(f"configuration-{run}")
        node.vm.put(pod.manifest().encode(), f"{ETC}/manifests/{pod.name}.yaml")
    node.vm.run(f"sleep 1; mkdir -p {DROP_INS}", check=True)
    resume = hung(node.vm, DROP_INS)
    node.vm.run("systemctl reload headroomd.service && sleep 1", check=True)
    return resume


def stalls(node) -> float:
    return float(re.search(r"^headroom_loop_stalls_total (\S+)$", node.metrics(), re.M)[1])


def test_an_eviction_waits_for_nothing_that_has_stopped(vm):
    """p99 of crossing to SIGKILL is within the bound of the calm case, and each eviction is on record once they go on."""
    vm.run(f"modprobe fuse; mkdir -p {HUNG}", check=True)
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi", disk={"imagefs": HUNG}))
        others = small_bystanders(node)
        calm = [evict(node, f"calm-{run}") for run in range(RUNS)]
        print("    calm          p50 {:5.1f} ms, most {:5.1f} ms".format(*quantiles(calm)))
        worst = {"calm": max(calm)}
        for what, stop in (("journal", lambda: stopped_unit(vm, "systemd-journald.service")),
                           ("bus", lambda: stopped_unit(vm, "dbus.service")),
                           ("readers", lambda: stopped_readers(vm)),
                           ("mount", lambda: hung_mount(vm)),
                           ("configuration", lambda: hung_configuration(node))):
            resume = stop()
            try:
                latencies = [evict(node, f"{what}-{run}") for run in range(RUNS)]
            finally:
                resume()
            print("    {:13} p50 {:5.1f} ms, most {:5.1f} ms".format(what, *quantiles(latencies)))
            worst[what] = max(latencies)
        assert all(most <= LONGEST_MS for most in worst.values()), worst
        records = [record["pod"]["name"] for record in node.evictions()]
        assert len(records) == len(set(records)) == 6 * RUNS, records
        assert all(node.alive(pod) for pod in others) and node.kernel_oom_kills() == 0
        assert stalls(node) == 0
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "0"


def faults(node) -> dict[str, tuple[int, int]]:
    """Page faults of each thread of headroomd: those without a disk, those that read one."""
    out = node.vm.run("cd /proc/$(pidof headroomd)/task; for id in *; do echo $(sed 's/.*) //' $id/stat | cut -d' ' -f8,10) $(cat $id/comm); "
                      "done", check=True).out
    return {name: (int(minor), int(major)) for minor, major, name in (line.split(" ", 2) for line in out.splitlines())}


# Of the program and the libraries that its loop executes (kLoopLibraries), KiB that are mapped and not in memory.
CODE_ON_DISK = r"""awk '/^[0-9a-f]+-[0-9a-f]+ / {ours = $2 != "---p" && $6 ~ "/(headroomd|(ld-linux|libbpf|libc|libgcc_s|libm|libstdc\\+\\+|libsystemd)[-.][^/]*)$"}
    ours && $1 == "Size:" {missing += $2} ours && $1 == "Rss:" {missing -= $2} END {print missing}' /proc/$(pidof headroomd)/smaps"""


def test_the_first_eviction_reads_no_code_from_a_disk(vm):
    """What no program has mapped is dropped from the page cache before, as on a node that is short of memory."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi"))
        vm.run("sleep 3; sync; echo 3 > /proc/sys/vm/drop_caches", check=True)
        assert vm.run(CODE_ON_DISK, check=True).out.strip() == "0"
        before = faults(node)
        latency = evict(node, "first")
        rows = {name: tuple(now - was for now, was in zip(after, before.get(name, (0, 0)))) for name, after in faults(node).items()}
        print(f"    {latency:.1f} ms; page faults without a disk, and with: {rows}")
        assert all(rows[name][1] == 0 for name in ("headroomd", "hr-sentinel", "hr-release")), rows


def test_khugepaged_leaves_its_memory_alone(vm):
    """It has the lowest priority, and would hold the lock of headroomd's address space while it is not run."""
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi"))
        vm.run("grep -q always.*madvise /sys/kernel/mm/transparent_hugepage/enabled", check=True)
        refused = vm.run("grep -h -e THP_enabled -e AnonHugePages /proc/$(pidof headroomd)/status /proc/$(pidof headroomd)/smaps_rollup", check=True)
        assert refused.out.split() == ["THP_enabled:", "0", "AnonHugePages:", "0", "kB"], refused.out


def test_the_daemon_ends_while_all_of_them_are_stopped(vm):
    """A stop does not wait for the journal, the bus, a reader, a mount or the configuration; systemd would send SIGKILL after 90 s."""
    vm.run(f"modprobe fuse; mkdir -p {HUNG}", check=True)
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="400Mi", disk={"imagefs": HUNG}))
        resume = [stopped_readers(vm), hung_mount(vm), hung_configuration(node)]
        resume += [stopped_unit(vm, unit) for unit in ("dbus.service", "systemd-journald.service")]
        try:
            ended = vm.run("systemctl stop headroomd.service; systemctl show -P Result headroomd.service", timeout=60, check=True)
        finally:
            for each in reversed(resume):
                each()
        assert ended.out.strip() == "success", ended.out
        print(f"    ended after {ended.seconds:.1f} s")
        assert ended.seconds < 15


def test_the_daemon_starts_beside_a_mount_that_hangs(vm):
    """It is ready, guards memory and takes a reload; what it cannot know of that filesystem is unknown."""
    vm.run(f"modprobe fuse; mkdir -p {HUNG}", check=True)
    with Node(vm) as node:
        resume = hung_mount(vm)
        try:
            node.start(kubelet_configuration(hard="400Mi", disk={"imagefs": HUNG}))
            assert "does not answer: images are taken to be on nodefs" in node.journal()
            evict(node, "first")
            vm.run("systemctl reload headroomd.service", check=True, timeout=20)
            evict(node, "second")
            assert [record["pod"]["name"] for record in node.evictions()] == ["first", "second"]
        finally:
            resume()
