# SPDX-License-Identifier: Apache-2.0
"""Victims that are not as others: that cannot die, come back under the same name, or are written to by others meanwhile;
and a clock that jumps."""

import time

from node import Node, Pod, kubelet_configuration
from starved import holds

KERNELS = ("6.12",)
MEMORY = "2G"
METRICS_PORT = 9750
MIB = 1 << 20
SOFT = {"hard": "150Mi", "soft": "900Mi", "grace": "1s"}


def uptime(vm) -> float:
    return float(vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)


FREEZE = """modprobe loop; truncate -s 32M /run/frozen.img && mkfs.ext4 -q -F /run/frozen.img && mkdir -p /mnt/frozen &&
    mount -o loop /run/frozen.img /mnt/frozen && fsfreeze --freeze /mnt/frozen"""


def thaw(node):
    node.vm.run("fsfreeze --unfreeze /mnt/frozen")
    node.stop()
    node.leave_pods()
    node.vm.run("umount /mnt/frozen; rm -f /run/frozen.img")


def test_the_memory_of_a_process_that_cannot_end_is_taken(vm):
    """One thread waits for a filesystem that is frozen, so nothing of its process goes: process_mrelease() takes the memory."""
    with Node(vm, replayed=True) as node:
        vm.run(FREEZE, check=True)
        try:
            node.start(kubelet_configuration(hard="300Mi"))
            stuck = node.run_pod(Pod("stuck", priority=-10), "--hold 700M --write /mnt/frozen/file")
            holds(node, stuck, 699)
            asleep = f"grep -q '^State:.D' /proc/$(cat {stuck.cgroup}/{stuck.unit}/cgroup.procs)/task/*/status"
            vm.wait_until(asleep, timeout=10)
            web = node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
            hog = node.run_pod(Pod("hog", "burstable", {"memory": "1500Mi"}), f"--hold {node.holding_to_leave(200)}M")
            record, = node.wait_for_evictions(1)
            assert (record["pod"]["name"], record["outcome"]) == ("stuck", "timed_out"), record
            vm.run(asleep, check=True)
            held = int(vm.run(f"cat {stuck.cgroup}/memory.current", check=True).out)
            print(f"    of 700 MiB it holds {held / MIB:.1f} MiB, and still waits")
            assert held < 20 * MIB and record["memory_returned"] > 600 * MIB, (held, record)
            assert "headroom_kill_assist_processes_reaped_total 1" in node.metrics()
            assert node.alive(web) and node.alive(hog) and node.kernel_oom_kills() == 0
        finally:
            thaw(node)


def test_a_victim_in_uninterruptible_sleep_is_reported_and_does_not_keep_the_next_alive(vm):
    """A write to a filesystem that is frozen ends for no signal."""
    with Node(vm, replayed=True) as node:
        vm.run(FREEZE, check=True)
        try:
            node.start(kubelet_configuration(hard="300Mi"))
            stuck = node.run_script(Pod("stuck", priority=-10),
                                    "echo x > /mnt/frozen/file & exec /opt/headroom/bin/workload --hold 700M")
            holds(node, stuck, 699)
            asleep = f"grep -q '^State:.D' $(sed 's,.*,/proc/&/status,' {stuck.cgroup}/{stuck.unit}/cgroup.procs)"
            vm.wait_until(asleep, timeout=10)
            web = node.run_pod(Pod("web", "burstable", {"memory": "200Mi"}), "--hold 100M")
            node.run_pod(Pod("hog"), f"--hold {node.holding_to_leave(200)}M")
            record, = node.wait_for_evictions(1)
            assert (record["pod"]["name"], record["outcome"]) == ("stuck", "timed_out"), record
            # What it held is back, all but one process; the next shortage ends another pod.
            node.run_pod(Pod("second"), "--rate 400M --until 4G")
            records = node.wait_for_evictions(3, timeout=90)[1:]
            came = {each["pod"]["name"]: each["outcome"] for each in records}
            assert came == {"hog": "evicted", "second": "evicted"}, came
            assert node.alive(web) and node.kernel_oom_kills() == 0
            vm.run(asleep, check=True)
            vm.run("fsfreeze --unfreeze /mnt/frozen", check=True)
            vm.wait_until(f"! systemctl is-active --quiet {stuck.unit}", timeout=20)
        finally:
            thaw(node)


def test_a_pod_that_comes_back_under_the_same_name_is_another(vm):
    """Between SIGTERM and the end of its grace the victim goes, and another is started at the very same path."""
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(**SOFT, max_pod_grace=6))
        deaf = node.run_pod(Pod("deaf"), f"--deaf --hold {node.holding_to_leave(500)}M")
        vm.wait_until("grep -q deaf /run/headroom/victims.json", timeout=30)
        before = vm.run(f"stat -c %i {deaf.cgroup}", check=True).out.strip()
        vm.run(f"systemctl kill -s KILL {deaf.unit}; systemctl stop {deaf.unit} {deaf.slice}; "
               f"systemctl reset-failed {deaf.unit}; true")
        again = node.run_pod(Pod("deaf"), "--deaf --hold 20M")
        holds(node, again, 19)
        assert vm.run(f"stat -c %i {again.cgroup}", check=True).out.strip() != before
        vm.run("sleep 9")
        record, = node.evictions()
        assert record["pod"]["name"] == "deaf", record
        assert node.alive(again), "it has the name of one that was to die, and is another"


def test_a_clock_that_jumps_moves_no_deadline(vm):
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(**SOFT, max_pod_grace=6))
        node.run_pod(Pod("deaf"), f"--deaf --hold {node.holding_to_leave(500)}M")
        vm.wait_until("grep -q deaf /run/headroom/victims.json", timeout=30)
        vm.run("date -s '+2 hours'; sleep 1; date -s '-5 hours'; sleep 1; date -s '+3 hours'", check=True)
        record, = node.wait_for_evictions(1)
        given = (record["instants_ns"]["killed"] - record["instants_ns"]["terminated"]) / 1e9
        assert 6.0 <= given < 7.5, record
        assert vm.run("systemctl show -P NRestarts headroomd.service", check=True).out.strip() == "0"
        status = node.status()
        assert status["mode"] == "enforce" and uptime(vm) > 0, status


def test_writes_to_a_dying_cgroup_change_nothing(vm):
    """Limits that are lifted so that it dies fast are put back by another program, over and over."""
    with Node(vm, replayed=True) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        hog = node.run_script(Pod("hog"), "until [ -e /run/go ]; do sleep 0.1; done; "
                              "exec /opt/headroom/bin/workload --until 8G --rate 300M")
        node.vm.wait_until(f"[ -d {hog.cgroup} ]")
        vm.run("rm -f /run/go")
        vm.spawn(f"cd {hog.cgroup} && while :; do echo 1 > cpu.weight; echo 20000 100000 > cpu.max; "
                 "echo max > memory.high; done 2>/dev/null", unit="headroom-test-meddler.service")
        try:
            time.sleep(1)
            vm.run("touch /run/go", check=True)
            record, = node.wait_for_evictions(1)
            assert record["pod"]["name"] == "hog" and record["outcome"] == "evicted", record
            print(f"    gone {record['latency']['kill_to_exit_ms']:.0f} ms after SIGKILL")
            assert node.kernel_oom_kills() == 0
        finally:
            vm.run("systemctl stop headroom-test-meddler.service; rm -f /run/go")
