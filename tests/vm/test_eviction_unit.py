# SPDX-License-Identifier: Apache-2.0
"""What a kill takes of a pod: one container, one process, or what dies as one; never more than was asked for."""

from node import Node, Pod, kubelet_configuration

MEMORY = "2G"
METRICS_PORT = 9750
KERNELS = ("6.12",)

UNIT = "headroom.io/eviction-unit"
WORKLOAD = "/opt/headroom/bin/workload"
HOG = f"{WORKLOAD} --hold 1M --after 3 --until 4G"
# A process that grows beside one that does not; the shell waits for both.
GROWING_CHILD = f"{WORKLOAD} --hold 60M & {HOG} & wait"


def beside(node, pod, name, script, *properties):
    """Another container of the pod: its unit's name."""
    return node.vm.spawn(script, unit=f"headroom-test-{name}.service", slice=pod.slice, properties=properties)


def lives(node, unit):
    return node.vm.run(f"systemctl is-active --quiet {unit}").code == 0


def the_one_eviction(node):
    record, = node.wait_for_evictions(1)
    assert record["outcome"] == "evicted", record
    signal = record["latency"]["crossing_to_decision_ms"] + record["latency"]["decision_to_signal_ms"]
    print(f"    last clear sample to SIGKILL: {signal:.1f} ms")
    assert record["allocations"] == 0, record
    assert node.kernel_oom_kills() == 0
    assert record["predicted"]["release"] >= record["memory_returned"] / 2, record
    return record


def assert_the_pod_was_not_evicted(node, unit):
    page = node.metrics()
    assert 'kubelet_evictions{eviction_signal="memory.available"} 0' in page
    assert f'headroom_partial_evictions_total{{outcome="done",unit="{unit}"}} 1' in page
    assert node.status()["counters"]["partial_evictions"] == 1


def test_the_container_goes_and_its_pod_stays(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        web = node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 100M")
        pod = node.run_script(Pod("pair", annotations={UNIT: "container"}), f"exec {HOG}")
        side = beside(node, pod, "side", f"exec {WORKLOAD} --hold 50M")
        record = the_one_eviction(node)
        assert record["pod"]["name"] == "pair" and record["unit"] == "container", record
        assert record["cgroup"]["path"].endswith(pod.unit), record
        assert not node.alive(pod) and lives(node, side) and node.alive(web)
        assert_the_pod_was_not_evicted(node, "container")
        assert "One container of the pod was killed" in vm.run("headroomctl why pair", check=True).out


def test_the_process_goes_and_its_container_stays(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi", evictionUnit="process"))
        pod = node.run_script(Pod("family"), GROWING_CHILD)
        record = the_one_eviction(node)
        assert record["unit"] == "process" and record["target"]["comm"] == "workload", record
        assert node.alive(pod)
        held = int(vm.run(f"cat {pod.cgroup}/memory.current", check=True).out)
        assert 55 << 20 < held < 120 << 20, held
        pids = vm.run(f"cat {pod.cgroup}/{pod.unit}/cgroup.procs", check=True).out.split()
        assert len(pids) == 2 and str(record["target"]["pid"]) not in pids, (pids, record)
        assert_the_pod_was_not_evicted(node, "process")
        assert "largest process was killed" in vm.run("headroomctl why family", check=True).out


def test_what_dies_as_one_dies_as_one(vm):
    """memory.oom.group of the container: it goes whole, and no more than it."""
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi", evictionUnit="process"))
        pod = node.run_script(Pod("group"), GROWING_CHILD, "OOMPolicy=kill")
        side = beside(node, pod, "side", f"exec {WORKLOAD} --hold 50M")
        assert vm.run(f"cat {pod.cgroup}/{pod.unit}/memory.oom.group", check=True).out.strip() == "1"
        record = the_one_eviction(node)
        assert record["unit"] == "container" and record["target"]["oom_group"], record
        assert not node.alive(pod) and lives(node, side)
        assert_the_pod_was_not_evicted(node, "container")


def test_a_pod_that_dies_as_one_is_evicted(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi", evictionUnit="process"))
        pod = node.run_script(Pod("whole"), GROWING_CHILD)
        vm.run(f"echo 1 > {pod.cgroup}/memory.oom.group", check=True)
        side = beside(node, pod, "side", f"exec {WORKLOAD} --hold 50M")
        record = the_one_eviction(node)
        assert record["unit"] == "pod" and record["target"] is None, record
        assert not node.alive(pod) and not lives(node, side)
        assert 'kubelet_evictions{eviction_signal="memory.available"} 1' in node.metrics()


def test_its_own_wish_is_before_the_nodes(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi", evictionUnit="process"))
        pod = node.run_script(Pod("wish", annotations={UNIT: "pod"}), GROWING_CHILD)
        record = the_one_eviction(node)
        assert record["unit"] == "pod" and not node.alive(pod), record
