# SPDX-License-Identifier: Apache-2.0
"""Memory pinning on two NUMA nodes: where the kernel takes a pod's pages from, across restarts and a damaged state file.

Read from the kernel alone: cpuset.mems, Mems_allowed_list and memory.numa_stat; and the state file.
"""

import json
import re

from held_change import kill_without_another, restart_again
from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
CPUS = 8
TOPOLOGY = "sockets=2,cores=2,threads=2"
NUMA = 2

STATE = "/var/lib/headroom/memory_manager_state"
HOLD_32_MIB = "(head -c 33554432 /dev/zero; exec sleep 600) | tail"


def configuration(mode="enforce", reserved="50Mi", **cpus):
    config = json.loads(kubelet_configuration(hard="50Mi", cpus={"mode": mode, **cpus}))
    config |= {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "memoryManagerPolicy": "Static",
               "topologyManagerPolicy": "restricted",
               "reservedMemory": [{"numaNode": 0, "limits": {"memory": reserved}}]}
    return json.dumps(config)


def guaranteed(name, mebibytes):
    amount = {"cpu": "1", "memory": f"{mebibytes}Mi"}
    return Pod(name, "guaranteed", amount, amount)


def two_pods(node):
    """More than half of a node each: the first is on node 0, and the second finds room on node 1 alone."""
    first = node.run_script(guaranteed("first", 600), "exec sleep 600")
    wait_for_nodes(node.vm, first, "0")
    second = node.run_script(guaranteed("second", 600), "sleep 2; " + HOLD_32_MIB)
    wait_for_nodes(node.vm, second, "1")
    return first, second


def container(pod):
    return f"{pod.cgroup}/{pod.unit}"


def wait_for_nodes(vm, pod, nodes):
    vm.wait_until(f'[ "$(cat {container(pod)}/cpuset.mems)" = "{nodes}" ]', timeout=10)


def allowed(vm, pod, what="Mems"):
    """What each process of the pod may use, as the kernel has it."""
    script = f"for pid in $(cat {container(pod)}/cgroup.procs); do grep {what}_allowed_list /proc/$pid/status; done"
    return {line.split()[1] for line in vm.run(script, check=True).out.splitlines()}


def anonymous_bytes(vm, pod):
    """NUMA node → bytes."""
    line = vm.run(f"grep '^anon ' {container(pod)}/memory.numa_stat", check=True).out
    return {int(node): int(count) for node, count in re.findall(r"N(\d+)=(\d+)", line)}


def entries(vm):
    state = json.loads(vm.run(f"cat {STATE}", check=True).out)
    assert state["policyName"] == "Static", state
    return {uid: {tuple(block["numaAffinity"]) for blocks in containers.values() for block in blocks}
            for uid, containers in state.get("entries", {}).items()}


def test_memory_comes_from_the_assigned_node(vm):
    with Node(vm) as node:
        node.start(configuration())
        first, second = two_pods(node)
        assert allowed(vm, first) == {"0"} and allowed(vm, second) == {"1"}
        assert entries(vm) == {first.uid: {(0,)}, second.uid: {(1,)}}
        vm.wait_until(f"[ $(grep -c . {container(second)}/cgroup.procs) -gt 1 ] && "
                      f"[ $(cat {container(second)}/memory.current) -gt 33554432 ]", timeout=20)
        used = anonymous_bytes(vm, second)
        assert used[1] >= 32 << 20 and used[0] < 1 << 20, used
        answer = json.loads(vm.run("headroomctl cpus --json", check=True).out)
        node_of = {cpu["cpu"]: cpu["numa"] for cpu in answer["cpus"]}
        own = {one["uid"]: node_of[int(one["cpus"])] for one in answer["containers"]}
        assert own == {first.uid: 0, second.uid: 1}, "the CPUs are on the same nodes"
        print(vm.run("headroomctl memory", check=True).out)
        metrics = node.metrics()
        assert "kubelet_memory_manager_pinning_requests_total 2" in metrics, metrics
        assert "kubelet_memory_manager_pinning_errors_total 0" in metrics, metrics
        assigned = 'headroom_numa_memory_assigned_bytes{numa_node="1",resource="memory"} 629145600'
        assert assigned in metrics, metrics


def test_a_restart_and_a_lost_or_damaged_file_keep_the_nodes(vm):
    with Node(vm) as node:
        node.start(configuration())
        first, second = two_pods(node)
        # Node 0 is free now: a new assignment would take it.
        vm.run(f"rm -f /etc/headroom/manifests/{first.name}.yaml; systemctl stop {first.unit} {first.slice}", check=True)
        node.pods.remove(first)
        vm.wait_until(f"! grep -q {first.uid} {STATE}", timeout=10)
        for what, damage in (("restarted", "true"), ("lost", f"rm {STATE}"), ("cut short", f"truncate -s 40 {STATE}"),
                             ("swapped", f"sed -i 's/629145600/629145601/' {STATE}")):
            vm.run(f"systemctl stop headroomd.service; systemctl reset-failed headroomd.service; {damage}; "
                   "systemctl start headroomd.service", check=True)
            vm.wait_until(f"grep -q {second.uid} {STATE} && headroomctl memory --json | grep -q {second.uid}", timeout=10)
            assert entries(vm) == {second.uid: {(1,)}}, what
            assert allowed(vm, second) == {"1"}, what
            assert '"writes":0' in vm.run("headroomctl memory --json", check=True).out, what
        assert vm.run(f"test -e {STATE}.damaged").code == 0
        journal = node.journal()
        assert "the assignment of memory is taken from the cgroups" in journal, journal


def test_what_others_change_is_put_back(vm):
    with Node(vm) as node:
        node.start(configuration())
        _, second = two_pods(node)
        for change in (f"echo 0 > {container(second)}/cpuset.mems",
                       f"systemctl set-property --runtime {second.unit} AllowedMemoryNodes=0-1",
                       "systemctl daemon-reload"):
            vm.run(change, check=True)
            wait_for_nodes(vm, second, "1")
        assert '"repairs":0' not in vm.run("headroomctl memory --json", check=True).out


def is_released(vm, pod):
    for state in (STATE, "/var/lib/headroom/cpu_manager_state"):
        vm.wait_until(f"grep -qi '\"policyName\":\"none\"' {state}", timeout=10)
    assert allowed(vm, pod) == {"0-1"}
    assert allowed(vm, pod, "Cpus") == {"0-7"}


def test_what_a_killed_daemon_assigned_is_released_without_another(vm):
    with Node(vm) as node:
        node.start(configuration())
        _, second = two_pods(node)
        try:
            kill_without_another(node)
            assert allowed(vm, second) == {"1"}
            vm.run("headroomd --restore", check=True)
            is_released(vm, second)
        finally:
            restart_again(node)
            vm.run("systemctl reset-failed headroomd.service")


def test_a_reload_that_ends_enforce_releases(vm):
    with Node(vm) as node:
        node.start(configuration())
        _, second = two_pods(node)
        # systemd turns the controller off, and all limits with it, when no unit has one.
        vm.run("systemctl set-property --runtime system.slice AllowedCPUs=0-7 AllowedMemoryNodes=0-1", check=True)
        node.configure(configuration(mode="observe"))
        vm.run("systemctl reload headroomd.service", check=True)
        is_released(vm, second)
        node.configure(configuration())
        vm.run("systemctl reload headroomd.service", check=True)
        vm.wait_until(f"grep -q {second.uid} {STATE}", timeout=10)
        vm.wait_until(f"! grep -q 'Mems_allowed_list:.*0-1' /proc/$(head -1 {container(second)}/cgroup.procs)/status", timeout=10)
        vm.run("systemctl set-property --runtime system.slice AllowedCPUs= AllowedMemoryNodes=", check=True)


def test_a_sum_that_differs_from_the_reservations_is_refused(vm):
    with Node(vm) as node:
        node.configure(configuration(reserved="60Mi"))
        answer = vm.run("systemctl start headroomd.service; journalctl -u headroomd.service --no-pager -n 20 2>&1").out
        assert "reservedMemory: the total amount" in answer, answer
        vm.run("systemctl stop headroomd.service; systemctl reset-failed headroomd.service; true")
