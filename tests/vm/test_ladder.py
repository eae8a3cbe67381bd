# SPDX-License-Identifier: Apache-2.0
"""The ladder: cache is taken before a pod dies, best-effort is held and let go, a stuck pod is helped, and a hard
threshold waits for none of it."""

from enabled_service import enabled_service
from node import Node, Pod, kubelet_configuration

MEMORY = "1G"
METRICS_PORT = 9750
KERNELS = ("6.12",)

MIB = 1 << 20
CACHE = "/var/tmp/headroom-cache"


def limit(node, path):
    return node.vm.run(f"cat {path}/memory.high", check=True).out.strip()


def has_limit(node, path, test, timeout=30):
    node.vm.wait_until(f"[ $(cat {path}/memory.high) {test} ]", timeout=timeout)


def cold_cache(node, mebibytes):
    """A best-effort pod that has mapped a file, and sleeps: its cache is active, and no longer used."""
    node.vm.run(f"truncate -s {mebibytes}M {CACHE}", check=True)
    pod = node.run_pod(Pod("reader"), f"--map {CACHE}")
    node.vm.wait_until(f"[ $(awk '/^file /{{print $2}}' {pod.cgroup}/memory.stat) -gt {mebibytes * MIB * 9 // 10} ]",
                       timeout=60)
    node.vm.run(f"systemctl kill -s STOP {pod.unit}", check=True)
    return pod


def cached(node, pod):
    return int(node.vm.run(f"awk '/^file /{{print $2}}' {pod.cgroup}/memory.stat", check=True).out)


def test_cold_cache_is_taken_and_no_pod_dies(vm):
    with Node(vm, replayed=True) as node:
        try:
            reader = cold_cache(node, 300)
            node.start(kubelet_configuration(hard="60Mi", ladder={"reclaim": {"margin": "20%"}}))
            filler = node.run_pod(Pod("web", "burstable", {"memory": "900Mi"}),
                                  f"--hold {node.holding_to_leave(180)}M")
            # 60 MiB and a fifth of some 960.
            vm.wait_until("headroomctl status --json | grep -q '\"reclaim\":[1-9]'", timeout=30)
            vm.wait_until(f"[ $(awk '/^file /{{print $2}}' {reader.cgroup}/memory.stat) -lt {230 * MIB} ]", timeout=60)
            print(f"    page cache left of 300 MiB: {cached(node, reader) >> 20} MiB, "
                  f"available: {node.memory_available() >> 20} MiB")
            assert node.alive(reader) and node.alive(filler)
            assert node.evictions() == [] and node.kernel_oom_kills() == 0
            assert 'headroom_ladder_steps_total{outcome="started",step="reclaim"} 0' not in node.metrics()
        finally:
            vm.run(f"rm -f {CACHE}")


def test_a_hog_meets_the_steps_and_dies_as_fast(vm):
    """Best-effort is held while it comes near; at the threshold it dies at once; then best-effort is let go."""
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="200Mi", ladder={
            "reclaim": {"margin": "25%"}, "squeeze": {"margin": "25%", "maxDuration": "6s"}}))
        batch = node.run_pod(Pod("batch"), "--hold 100M")
        vm.wait_until(f"[ $(cat {batch.cgroup}/memory.current) -gt {100 * MIB} ]")
        # Slow until best-effort is held, then as fast as it can.
        hog = node.run_script(Pod("hog", "burstable", {"memory": "8Mi"}), (
            f"/opt/headroom/bin/workload --hold {node.holding_to_leave(320)}M & "
            f"until [ -e /run/go ]; do sleep 0.05; done; exec /opt/headroom/bin/workload --until 2G"))
        try:
            has_limit(node, batch.cgroup, "!= max")
            vm.run("touch /run/go", check=True)
            record, = node.wait_for_evictions(1)
        finally:
            vm.run("rm -f /run/go")
        assert record["pod"]["name"] == "hog" and record["kind"] == "hard", record
        signal = record["latency"]["crossing_to_decision_ms"] + record["latency"]["decision_to_signal_ms"]
        print(f"    last clear sample to SIGKILL: {signal:.1f} ms")
        assert signal < 100 and record["allocations"] == 0, record
        assert record["ladder"]["squeeze"] == 1, record
        is_as_before(node, batch)
        assert node.alive(batch) and not node.alive(hog) and node.kernel_oom_kills() == 0
        assert vm.run("test -e /run/headroom/memory-high.json").code == 1
        assert "In the minute before" in vm.run("headroomctl why hog", check=True).out


def has_setting(vm, pod):
    """In systemd's directory, where it would outlive the unit."""
    return vm.run(f"test -e /run/systemd/system.control/{pod.slice}.d").code == 0


def is_as_before(node, pod):
    """No limit soon, and no setting of ours."""
    has_limit(node, pod.cgroup, "= max")
    node.vm.wait_until(f"[ ! -e /run/systemd/system.control/{pod.slice}.d ]", timeout=5)


def held_best_effort(node):
    node.start(kubelet_configuration(hard="60Mi", ladder={"squeeze": {"margin": "25%", "maxDuration": "10m"}}))
    batch = node.run_pod(Pod("batch"), "--hold 100M")
    node.vm.wait_until(f"[ $(cat {batch.cgroup}/memory.current) -gt {100 * MIB} ]")
    node.run_pod(Pod("web", "burstable", {"memory": "900Mi"}), f"--hold {node.holding_to_leave(250)}M")
    has_limit(node, batch.cgroup, f"-lt {200 * MIB}")
    return batch


def test_what_is_held_is_put_back_in_any_case(vm):
    """The daemon stopped, and killed: the next one puts back what it found."""
    with Node(vm, replayed=True) as node:
        batch = held_best_effort(node)
        status = node.status()["ladder"]["held"]
        assert [each["pod"] for each in status] == ["default/batch"] and status[0]["original"] is None, status
        node.configure(kubelet_configuration(hard="60Mi"))
        assert vm.run("test -e /run/headroom/memory-high.json").code == 0
        vm.run("systemctl kill -s KILL headroomd.service", check=True)
        vm.wait_until("systemctl is-active --quiet headroomd.service && headroomctl status >/dev/null", timeout=30)
        is_as_before(node, batch)
        assert "restoring memory.high of 1 cgroups" in node.journal()
        assert vm.run("test -e /run/headroom/memory-high.json").code == 1
        node.leave_pods()
        node.stop()
        batch = held_best_effort(node)
        node.stop()
        assert limit(node, batch.cgroup) == "max" and not has_setting(vm, batch)
        assert node.evictions() == []


def test_a_value_that_another_program_writes_stays_and_ours_is_forgotten(vm):
    """It writes the file, behind systemd's back: what systemd was asked to set must not come back."""
    with Node(vm) as node:
        batch = held_best_effort(node)
        other = str(400 * MIB)
        vm.run(f"echo {other} > {batch.cgroup}/memory.high", check=True)
        ours = vm.run(f"cat /run/systemd/system.control/{batch.slice}.d/50-MemoryHigh.conf", check=True).out
        assert other not in ours, ours
        node.stop()
        assert limit(node, batch.cgroup) == other
        assert not has_setting(vm, batch)


def test_a_limit_of_the_units_own_files_is_put_back_without_a_setting(vm):
    """A setting with the same value would win over the files when they change."""
    own = str(800 * MIB)
    with Node(vm) as node:
        files = f"/run/systemd/system/{Pod('batch').slice}.d"
        try:
            vm.put(f"[Slice]\nMemoryHigh={own}\n".encode(), f"{files}/own.conf")
            vm.run("systemctl daemon-reload", check=True)
            batch = held_best_effort(node)
            node.stop()
            assert limit(node, batch.cgroup) == own and not has_setting(vm, batch)
            vm.run(f"sed -i s/={own}/={700 * MIB}/ {files}/own.conf; systemctl daemon-reload", check=True)
            assert vm.run(f"systemctl show -P MemoryHigh {batch.slice}", check=True).out.strip() == str(700 * MIB)
        finally:
            vm.run(f"rm -rf {files}; systemctl daemon-reload")


def test_a_pod_whose_services_have_ended_is_let_go(vm):
    """Its slice, empty, stays, and they may be started again."""
    with Node(vm, replayed=True) as node:
        batch = held_best_effort(node)
        vm.run(f"systemctl stop {batch.unit}", check=True)
        assert limit(node, batch.cgroup) != "max"
        is_as_before(node, batch)


def test_a_unit_that_stays_loaded_is_started_again_without_our_limit(vm):
    with Node(vm) as node, enabled_service(vm, Pod("batch").slice) as service:
        batch = held_best_effort(node)
        assert has_setting(vm, batch)
        vm.run(f"systemctl stop {batch.slice}", check=True)
        vm.wait_until(f"[ ! -e /run/systemd/system.control/{batch.slice}.d ]", timeout=30)
        vm.run(f"systemctl start {service}", check=True)
        assert vm.run(f"systemctl show -P MemoryHigh {batch.slice}", check=True).out.strip() == "infinity"
        assert limit(node, batch.cgroup) == "max"


def test_the_stuck_is_relaxed_then_evicted(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="60Mi", ladder={
            "stuck": {"waitDuration": "5s", "relaxDuration": "20s", "evict": True}}))
        # One needs a little more than its limit; the other will have ever more.
        eased = node.run_pod(Pod("eased", "burstable", {"memory": "20Mi"}), "--hold 52M", "MemoryHigh=40M")
        hopeless = node.run_pod(Pod("hopeless", "burstable", {"memory": "20Mi"}), "--hold 1M --until 300M",
                                "MemoryHigh=40M")
        raised = f"= {60 * MIB}"
        has_limit(node, f"{eased.cgroup}/{eased.unit}", raised, timeout=60)
        record, = node.wait_for_evictions(1, timeout=90)
        assert record["pod"]["name"] == "hopeless", record
        assert record["signal"] == "memory.high" and record["kind"] == "stuck", record
        assert record["threshold"] == 60 * MIB, "stuck at the raised one as well"
        has_limit(node, f"{eased.cgroup}/{eased.unit}", f"= {40 * MIB}", timeout=60)
        assert node.alive(eased) and not node.alive(hopeless)
        assert node.evictions() == [record]
        assert "stuck at its own memory.high" in vm.run("headroomctl why hopeless", check=True).out


def test_the_stuck_with_a_limit_of_its_own_is_relaxed_below_it(vm):
    """As a container with memory QoS: memory.high below memory.max. Neither the raised limit nor the eviction leaves it to the kernel."""
    with Node(vm, replayed=True) as node:
        vm.run("swapoff -a", check=True)
        node.start(kubelet_configuration(hard="60Mi", ladder={
            "stuck": {"waitDuration": "5s", "relaxDuration": "20s", "evict": True}}))
        # At most four fifths of 80 MiB: one is raised by half, to 60; that of 70 MiB to 56; that of 48 MiB is above it already.
        eased = node.run_pod(Pod("eased", "burstable", {"memory": "20Mi"}), "--hold 52M", "MemoryHigh=40M", "MemoryMax=80M")
        for name, most in (("hopeless", 70), ("near", 48)):
            node.run_pod(Pod(name, "burstable", {"memory": "20Mi"}), "--hold 1M --until 300M", "MemoryHigh=40M", f"MemoryMax={most}M")
        has_limit(node, f"{eased.cgroup}/{eased.unit}", f"= {60 * MIB}", timeout=60)
        records = node.wait_for_evictions(2, timeout=90)
        assert {each["pod"]["name"]: each["threshold"] // MIB for each in records} == {"near": 40, "hopeless": 56}, records
        assert {each["kind"] for each in records} == {"stuck"}, records
        has_limit(node, f"{eased.cgroup}/{eased.unit}", f"= {40 * MIB}", timeout=60)
        own = vm.run(f"cat {eased.cgroup}/{eased.unit}/memory.max; grep '^oom_kill ' {eased.cgroup}/memory.events", check=True).out
        assert own.split() == [str(80 * MIB), "oom_kill", "0"], own
        assert node.alive(eased)
        assert len(node.evictions()) == 2 and node.kernel_oom_kills() == 0
