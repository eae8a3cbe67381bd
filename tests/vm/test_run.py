# SPDX-License-Identifier: Apache-2.0
"""headroomctl run: admission, the right slice and values, output and exit status passed through, nothing left behind."""

import json
import time

from node import ETC, Node, kubelet_configuration

CORE = True
KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
MIB = 1 << 20


def configuration():
    config = json.loads(kubelet_configuration(hard="100Mi", slices={"mode": "enforce"}))
    return json.dumps(config | {"enforceNodeAllocatable": ["pods"]})


def left_behind(vm):
    return vm.run(f"ls {ETC}/manifests; systemctl list-units --all --plain --no-legend '*-pod*' 'headroom-run-*'; "
                  "ls -d /sys/fs/cgroup/kubepods.slice/*-pod* /sys/fs/cgroup/kubepods.slice/*/*-pod* 2>/dev/null; true").out


def wait_clean(vm):
    vm.wait_until(f"[ -z \"$(ls {ETC}/manifests)$(systemctl list-units --all --plain --no-legend '*-pod*' 'headroom-run-*')\" ]")


def test_output_and_exit_status_pass_through_and_nothing_is_left(vm):
    with Node(vm) as node:
        node.start(configuration())
        ran = vm.run("echo in | headroomctl run --name echo -- sh -c 'read word; echo $word out; echo err >&2; exit 7'")
        assert ran.code == 7 and "in out" in ran.out and "err" in ran.out, ran.out
        wait_clean(vm)
        assert left_behind(vm) == "", left_behind(vm)


def test_a_pod_has_the_values_of_its_class_and_the_daemon_knows_it(vm):
    with Node(vm) as node:
        node.start(configuration())
        told = vm.run("headroomctl run --detach --json --name web --request cpu=500m,memory=64Mi "
                      "--limit memory=128Mi,cpu=1 --priority 1000 --grace 5 -- sleep 1000", check=True).out
        assert json.loads(told)["unit"] == "headroom-run-default.web.service", told
        vm.wait_until("headroomctl status --json | grep -q '\"name\":\"web\"'")
        pod, = (p for p in node.status()["pods"] if p["name"] == "web")
        assert (pod["qos"], pod["priority"], pod["request"]) == ("Burstable", 1000, 64 * MIB), pod
        slice = vm.run("ls -d /sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/*-pod*", check=True).out.strip()
        files = vm.run(f"cd {slice}; cat cpu.weight cpu.max memory.max", check=True).out.split("\n")[:3]
        assert files == ["20", "100000 100000", str(128 * MIB)], files
        total = int(vm.run("awk '/^MemTotal/{print $2*1024}' /proc/meminfo").out)
        adj = vm.run("cat /proc/$(systemctl show -P MainPID headroom-run-default.web.service)/oom_score_adj").out.strip()
        assert int(adj) == max(3, 1000 - 1000 * 64 * MIB // total), adj
        vm.wait_until("grep -qx 20 /sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/cpu.weight")
        twice = vm.run("headroomctl run --name web -- true")
        assert twice.code == 1 and "runs already" in twice.out, twice.out
        assert vm.run("systemctl is-active headroom-run-default.web.service").code == 0
        assert json.loads(vm.run("headroomctl stop --json web", check=True).out)["name"] == "web"
        wait_clean(vm)
        assert vm.run("headroomctl stop web").code == 1


def test_who_is_not_admitted_or_told_nonsense_does_not_run(vm):
    with Node(vm) as node:
        node.start(configuration())
        vm.run("sleep 1")
        refused = vm.run("headroomctl run --name big --request memory=64Gi -- touch /tmp/ran")
        assert refused.code == 1 and "OutOfmemory" in refused.out, refused.out
        wrong = vm.run("headroomctl run --name 'a b' --request memory --limit cpu=1x -- touch /tmp/ran")
        assert wrong.code == 2 and "--name" in wrong.out and "--request" in wrong.out, wrong.out
        node.stop()
        silent = vm.run("headroomctl run --name late -- touch /tmp/ran")
        assert silent.code == 3 and "not running" in silent.out, silent.out
        assert vm.run("test -e /tmp/ran").code != 0 and left_behind(vm) == ""


def test_a_hundred_pods_come_and_go_and_leave_nothing(vm):
    with Node(vm) as node:
        node.start(configuration())
        before = vm.run("systemctl list-units --all --plain --no-legend | wc -l", check=True).out
        calls = json.loads(vm.run("headroomctl slices --json").out)["bus_calls"]["made"]
        began = time.monotonic()
        vm.run("""for batch in 1 2 3 4 5; do for i in $(seq 20); do
                headroomctl run --name p$batch-$i --request cpu=5m -- true & done; wait; done""", timeout=400)
        took = time.monotonic() - began
        wait_clean(vm)
        assert left_behind(vm) == ""
        vm.wait_until(f"[ $(systemctl list-units --all --plain --no-legend | wc -l) -le {before.strip()} ]")
        made = json.loads(vm.run("headroomctl slices --json").out)["bus_calls"]["made"] - calls
        print(f"    100 pods in {took:.1f} s, no unit left; the tiers followed in {made} bus calls")
