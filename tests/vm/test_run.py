# SPDX-License-Identifier: Apache-2.0
"""headroomctl run: admission, the right slice and values, output and exit status passed through, nothing left behind;
a manifest's containers, displacement by critical pods, and hundreds of them."""

import json
import os
import time

from node import ETC, Node, kubelet_configuration

CORE = True
KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
MIB = 1 << 20


def configuration(**keys):
    config = json.loads(kubelet_configuration(hard="100Mi", slices={"mode": "enforce"}))
    return json.dumps(config | {"enforceNodeAllocatable": ["pods"]} | keys)


def left_behind(vm):
    return vm.run(f"ls -A {ETC}/manifests; ls -A /run/headroom/manifests; "
                  "systemctl list-units --all --plain --no-legend '*-pod*' 'headroom-run-*'; "
                  "ls -d /sys/fs/cgroup/kubepods.slice/*-pod* /sys/fs/cgroup/kubepods.slice/*/*-pod* 2>/dev/null; true").out


def wait_clean(vm):
    vm.wait_until(f"[ -z \"$(ls -A {ETC}/manifests)$(ls -A /run/headroom/manifests)$(systemctl list-units --all --plain --no-legend '*-pod*' 'headroom-run-*')\" ]")


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
        started = vm.run("headroomctl run --detach --json --name web --request cpu=500m,memory=64Mi "
                      "--limit memory=128Mi,cpu=1 --priority 1000 --grace 5 -- sleep 1000", check=True).out
        assert json.loads(started)["units"] == ["headroom-run-default.web.service"], started
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
        assert twice.code == 1 and "is already running" in twice.out, twice.out
        assert vm.run("systemctl is-active headroom-run-default.web.service").code == 0
        assert json.loads(vm.run("headroomctl stop --json web", check=True).out)["name"] == "web"
        wait_clean(vm)
        assert vm.run("headroomctl stop web").code == 1


def test_a_pod_that_is_refused_or_invalid_does_not_run(vm):
    with Node(vm) as node:
        node.start(configuration())
        vm.run("sleep 1")
        refused = vm.run("headroomctl run --name big --request memory=64Gi -- touch /tmp/ran")
        assert refused.code == 1 and "OutOfmemory" in refused.out, refused.out
        # Any user may ask whether a pod would be admitted; only root's call is counted.
        other = vm.run("setpriv --reuid=65534 --regid=65534 --clear-groups busctl call io.headroom.Headroom1 "
                       "/io/headroom/Headroom1 io.headroom.Headroom1 AdmitToStart s x")
        assert other.code != 0 and "denied" in other.out, other.out
        assert 'kubelet_admission_rejections_total{reason="OutOfmemory"} 1\n' in node.metrics()
        wrong = vm.run("headroomctl run --name 'a b' --request memory --limit cpu=1x -- touch /tmp/ran")
        assert wrong.code == 2 and "--name" in wrong.out and "--request" in wrong.out, wrong.out
        node.stop()
        silent = vm.run("headroomctl run --name late -- touch /tmp/ran")
        assert silent.code == 3 and "not running" in silent.out, silent.out
        assert vm.run("test -e /tmp/ran").code != 0 and left_behind(vm) == ""


PARTS = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "parts", "namespace": "shop"},
         "spec": {"terminationGracePeriodSeconds": 5,
                  "initContainers": [{"name": "fetch", "command": ["/bin/sh", "-c", "echo fetched"]},
                                     {"name": "log", "restartPolicy": "Always", "command": ["/bin/sleep", "1000"]}],
                  "containers": [{"name": "main", "command": ["/bin/sh", "-c"], "args": ["echo main; sleep 1; exit 4"]},
                                 {"name": "side", "command": ["/bin/echo", "side"]}]}}


def test_a_manifests_containers_run_and_all_of_it_goes(vm):
    with Node(vm) as node:
        node.start(configuration())
        vm.put(json.dumps(PARTS).encode(), "/tmp/parts.yaml")
        ran = vm.run("headroomctl run -f /tmp/parts.yaml")
        assert ran.code == 4 and set(ran.out.split()) == {"fetched", "main", "side"}, ran.out
        wait_clean(vm)
        assert left_behind(vm) == "", left_behind(vm)
        # Nothing waits: the container that ends last tidies up.
        vm.run("headroomctl run --detach -f /tmp/parts.yaml", check=True)
        units = [each["unit"] for each in json.loads(vm.run("headroomctl list --json", check=True).out)["runs"]]
        assert "headroom-run-shop.parts.log.service" in units, units
        wait_clean(vm)
        assert left_behind(vm) == "", left_behind(vm)
        PARTS["spec"]["initContainers"][0]["command"][-1] = "exit 9"
        vm.put(json.dumps(PARTS).encode(), "/tmp/parts.yaml")
        assert vm.run("headroomctl run --detach -f /tmp/parts.yaml").code == 9, "it was not fetched"
        wait_clean(vm)
        del PARTS["spec"]["containers"][0]["command"], PARTS["spec"]["containers"][1]["command"]
        vm.put(json.dumps(PARTS).encode(), "/tmp/parts.yaml")
        wrong = vm.run("headroomctl run -f /tmp/parts.yaml")
        assert wrong.code == 2 and wrong.out.count("images are not supported here") == 2, wrong.out
        assert vm.run("headroomctl run -f /tmp/parts.yaml --name x -- true").code == 2
        assert vm.run("headroomctl run --name x").code == 2


def test_a_critical_pod_displaces_others_with_their_grace(vm):
    with Node(vm) as node:
        node.start(configuration())
        vm.run("sleep 1")
        for name, cpu in (("small", 300), ("large", 1500)):
            vm.run(f"headroomctl run --detach --name {name} --request cpu={cpu}m --grace 20 -- "
                   f"sh -c 'trap \"touch /tmp/said-{name}; exit 0\" TERM; touch /tmp/up-{name}; while :; do sleep 0.1; done'",
                   check=True)
            vm.wait_until(f"test -e /tmp/up-{name}")
        vm.wait_until("headroomctl status --json | grep -q '\"name\":\"large\"'")
        vm.run("sleep 1")
        refused = vm.run("headroomctl run --name plain --request cpu=1 -- true")
        assert refused.code == 1 and "OutOfcpu" in refused.out, refused.out
        began = time.monotonic()
        ran = vm.run("headroomctl run --name dns --priority 2000000000 --request cpu=1 -- echo running")
        took = time.monotonic() - began
        assert ran.code == 0 and "running" in ran.out, ran.out
        assert "preempting default/large: Preempted in order to admit critical pod default/dns" in ran.out, ran.out
        assert vm.run("test -e /tmp/said-large").code == 0, "it had its grace"
        assert 'kubelet_preemptions{preemption_signal="cpu"} 1\n' in node.metrics()
        names = [each["name"] for each in json.loads(vm.run("headroomctl list --json", check=True).out)["runs"]]
        assert names == ["small"], names
        said = vm.run("journalctl -o cat HEADROOM_REASON=Preempting").out
        assert said.startswith("preempting default/large"), said
        print(f"    displaced, gone and started in {took:.1f} s")
        vm.run("headroomctl stop small; rm -f /tmp/said-* /tmp/up-*")
        wait_clean(vm)


PODS = int(os.environ.get("HEADROOM_PODS", "50"))  # HEADROOM_PODS=500 takes eight minutes in an emulator
AT_ONCE = 10
# A pod that comes costs the daemon one call, for the weight of its class, and one when it goes; fewer where some do together.
CALLS_PER_POD = 2


def test_pods_that_come_and_go_in_crowds_leave_nothing(vm):
    with Node(vm) as node:
        node.start(configuration(maxPods=1000))
        vm.wait_until("headroomctl slices > /dev/null", timeout=30)
        before = vm.run("systemctl list-units --all --plain --no-legend | wc -l", check=True).out
        bus = json.loads(vm.run("headroomctl slices --json").out)["dbus_calls"]
        began = time.monotonic()
        for first in range(0, PODS, 50):
            ran = vm.run(f"""seq {first} {first + 49} | xargs -P {AT_ONCE} -I# \
                headroomctl run --name p# --request cpu=3m -- true""", timeout=240)
            assert ran.code == 0, ran.out
        took = time.monotonic() - began
        wait_clean(vm)
        assert left_behind(vm) == ""
        vm.wait_until(f"[ $(systemctl list-units --all --plain --no-legend | wc -l) -le {before.strip()} ]")
        after = json.loads(vm.run("headroomctl slices --json").out)["dbus_calls"]
        # How long systemd takes for a call depends on the host; how many calls there are does not.
        made, seconds = after["made"] - bus["made"], after["seconds"] - bus["seconds"]
        print(f"    {PODS} pods in {took:.1f} s, no unit left; the tiers followed in {made} bus calls that took "
              f"{seconds:.2f} s, {seconds / max(1, made) * 1000:.1f} ms each")
        assert after["failed"] == bus["failed"] and made <= CALLS_PER_POD * PODS, (bus, after)
