# SPDX-License-Identifier: Apache-2.0
"""What headroomctl run makes of pods: every knob of their slices and services read back, for a table of configurations."""

import json

from kubelet_numbers import MIB, memory_high, page, quota, weight
from node import Node, kubelet_configuration

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
SWAP = "512M"
ROOT = "/sys/fs/cgroup"
TIERS = {"bank": "", "shop": "/kubepods-burstable.slice", "open": "/kubepods-burstable.slice",
         "idle": "/kubepods-besteffort.slice"}

# Name: cpu request and limit in milli, memory request and limit in MiB; 0: none.
PODS = {"bank": (200, 200, 64, 64), "shop": (100, 500, 32, 128), "open": (0, 0, 16, 0), "idle": (0, 0, 0, 0)}

GATE = {"featureGates": {"MemoryQoS": True}}
TIERED = {"featureGates": {"MemoryQoS": True, "CustomCPUCFSQuotaPeriod": True}, "cpuCFSQuotaPeriod": "20ms",
          "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.5,
          "memorySwap": {"swapBehavior": "LimitedSwap"}}
TABLE = [
    {},
    {"podPidsLimit": 77, "cpuCFSQuota": False, "singleProcessOOMKill": True},
    GATE,
    TIERED,
    {"memoryReservationPolicy": "TieredReservation"},
    GATE | {"memoryReservationPolicy": "None", "memoryThrottlingFactor": 1.0},
]


def configuration(keys):
    config = json.loads(kubelet_configuration(hard="100Mi", slices={"mode": "enforce"}))
    return json.dumps(config | {"enforceNodeAllocatable": ["pods"]} | keys)


def reservation(keys):
    return keys.get("memoryReservationPolicy", "None")


def protection(name, keys):
    """memory.min and memory.low of a pod and its container."""
    request, policy = PODS[name][2] * MIB, reservation(keys)
    hard = policy == "TieredReservation" and name == "bank"
    soft = policy == "TieredReservation" and name != "bank"
    return {"memory.min": str(request if hard else 0), "memory.low": str(request if soft else 0)}


def cpu_max(name, keys):
    period = 20000 if "cpuCFSQuotaPeriod" in keys else 100000
    return quota(0 if keys.get("cpuCFSQuota") is False else PODS[name][1], period if PODS[name][1] else 100000)


def expected(name, keys, node):
    """Of the slice and of the service in it."""
    cpu, _, request, limit = PODS[name]
    both = protection(name, keys) | {"cpu.weight": weight(cpu), "cpu.max": cpu_max(name, keys),
                                     "memory.max": str(limit * MIB) if limit else "max"}
    share = request * MIB * node["swap"] // node["total"]
    limited = "memorySwap" in keys and name in ("shop", "open")
    factor = keys.get("memoryThrottlingFactor")
    high = memory_high(request * MIB, limit * MIB, node["total"] - 100 * MIB, factor) if factor else "max"
    slice = both | {"pids.max": str(keys.get("podPidsLimit", "max")), "memory.high": "max"}
    service = both | {"memory.high": high, "memory.swap.max": page(share) if limited else "0",
                      "memory.oom.group": "0" if keys.get("singleProcessOOMKill") else "1"}
    return slice, service


def amounts(cpu, memory):
    """As --request and --limit take them."""
    return ",".join([f"cpu={cpu}m"] * bool(cpu) + [f"memory={memory}Mi"] * bool(memory))


def run(vm, name):
    cpu_request, cpu_limit, memory_request, memory_limit = PODS[name]
    words = [f"--request {amounts(cpu_request, memory_request)}"] * bool(cpu_request or memory_request)
    words += [f"--limit {amounts(cpu_limit, memory_limit)}"] * bool(cpu_limit or memory_limit)
    started = vm.run(f"headroomctl run --detach --json --name {name} {' '.join(words)} -- sleep 1000", check=True).out
    return json.loads(started)


def wrong(vm, cgroup, knobs):
    text = vm.run(f"cd {ROOT}{cgroup} && for k in {' '.join(knobs)}; do echo $k=$(cat $k); done", check=True).out
    has = dict(line.split("=", 1) for line in text.splitlines())
    return {knob: (has[knob], value) for knob, value in knobs.items() if has[knob] != value}


def wait_clean(vm):
    vm.wait_until("[ -z \"$(ls /run/headroom/manifests)$(systemctl list-units --all --plain --no-legend '*-pod*' "
                  "'headroom-run-*')\" ]", timeout=60)


def tiers(keys):
    """What the pods' slice and the tier of the Burstable ones hold of memory for those in them."""
    guaranteed, burstable = PODS["bank"][2] * MIB, (PODS["shop"][2] + PODS["open"][2]) * MIB
    policy = reservation(keys)
    if policy == "TieredReservation":
        return {"": {"memory.min": str(guaranteed), "memory.low": str(burstable)}, TIERS["shop"]: {"memory.low": str(burstable)}}
    return {}


def test_every_value_of_every_pod_is_the_kubelets(vm):
    vm.run("swapon --show | grep -q .", check=True)
    total, swap = (int(n) * 1024 for n in vm.run("awk '/^MemTotal|^SwapTotal/{print $2}' /proc/meminfo").out.split())
    read = 0
    with Node(vm) as node:
        for keys in TABLE:
            node.start(configuration(keys))
            vm.wait_until("headroomctl slices > /dev/null", timeout=30)
            for name in PODS:
                started = run(vm, name)
                slice = f"/kubepods.slice{TIERS[name]}/{started['slice']}"
                of_slice, of_service = expected(name, keys, {"total": total, "swap": swap})
                for cgroup, knobs in ((slice, of_slice), (f"{slice}/{started['units'][0]}", of_service)):
                    differs = wrong(vm, cgroup, knobs)
                    assert not differs, f"{keys}: {name}: {cgroup}: {differs} (has, should have)"
                    read += len(knobs)
            for tier, knobs in tiers(keys).items():
                for knob, value in knobs.items():
                    vm.wait_until(f"grep -qx {value} {ROOT}/kubepods.slice{tier}/{knob}", timeout=20)
                    read += 1
            listed = json.loads(vm.run("headroomctl list --json", check=True).out)["runs"]
            assert {each["name"] for each in listed} == set(PODS), listed
            for name in PODS:
                vm.run(f"headroomctl stop {name}", check=True)
            wait_clean(vm)
            node.stop()
    print(f"    {len(TABLE)} configurations, {len(PODS)} pods each: {read} values as they should be")


WHOLE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "whole"},
         "spec": {"resources": {"requests": {"cpu": "300m", "memory": "48Mi"}, "limits": {"cpu": "1", "memory": "96Mi"}},
                  "initContainers": [{"name": "first", "command": ["/bin/sh", "-c", "echo first; sleep 0.3"]}],
                  "containers": [
                      {"name": "a", "command": ["/bin/sh", "-c"], "args": ["echo a has $WHAT; sleep 1000"],
                       "env": [{"name": "WHAT", "value": "a word"}]},
                      {"name": "b", "command": ["/bin/sleep", "1000"], "resources": {"limits": {"memory": "32Mi"}}}]}}


def test_a_manifest_with_pod_level_resources_is_sized_as_one(vm):
    with Node(vm) as node:
        node.start(configuration(EVERY))
        vm.put(json.dumps(WHOLE).encode(), "/tmp/whole.json")
        started = json.loads(vm.run("headroomctl run --detach --json -f /tmp/whole.json", check=True).out.splitlines()[-1])
        slice = f"/kubepods.slice/kubepods-burstable.slice/{started['slice']}"
        both = {"cpu.max": "100000 100000", "memory.max": str(96 * MIB)}
        for cgroup, knobs in ((slice, both | {"cpu.weight": weight(300), "memory.min": str(48 * MIB)}),
                              (f"{slice}/headroom-run-default.whole.a.service", both),
                              (f"{slice}/headroom-run-default.whole.b.service", {"memory.max": str(32 * MIB)})):
            assert not wrong(vm, cgroup, knobs), (cgroup, wrong(vm, cgroup, knobs))
        vm.wait_until("journalctl -u headroom-run-default.whole.a.service -o cat | grep -qx 'a has a word'")
        vm.wait_until("headroomctl status --json | grep -q '\"name\":\"whole\"'")
        listed = json.loads(vm.run("headroomctl list --json", check=True).out)["runs"]
        assert [each["container"] for each in listed] == ["a", "b"], listed
        vm.run("systemctl stop headroom-run-default.whole.a.service && sleep 1", check=True)
        assert vm.run("ls /run/headroom/manifests").out.split() == ["default.whole.yaml"], "b still runs"
        vm.run("headroomctl stop whole", check=True)
        wait_clean(vm)
        print(vm.run("headroomctl list").out, end="")


HUGE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"},
        "spec": {"containers": [{"name": "main", "command": ["/bin/sleep", "1000"],
                                 "resources": {"limits": {"cpu": "100m", "memory": "16Mi", "hugepages-2Mi": "4Mi"}}}]}}


def test_huge_pages_are_counted_and_limited(vm):
    vm.run("echo 8 > /proc/sys/vm/nr_hugepages; grep -qw hugetlb /sys/fs/cgroup/cgroup.controllers", check=True)
    try:
        with Node(vm) as node:
            node.start(configuration({}))
            knob = "hugetlb.2MB.max"
            vm.wait_until(f"grep -qx {16 * MIB} {ROOT}/kubepods.slice/{knob}", timeout=20)
            assert node.status()["node"]["allocatable"]["hugepages-2Mi"] == "16Mi", node.status()["node"]
            vm.put(json.dumps(HUGE).encode(), "/tmp/huge.json")
            started = json.loads(vm.run("headroomctl run --detach --json -f /tmp/huge.json", check=True).out)
            assert not wrong(vm, f"/kubepods.slice/{started['slice']}", {knob: str(4 * MIB)})
            idle = run(vm, "idle")
            assert not wrong(vm, f"/kubepods.slice{TIERS['idle']}/{idle['slice']}", {knob: "0"})
            vm.run("echo 4 > /proc/sys/vm/nr_hugepages", check=True)
            vm.wait_until(f"grep -qx {8 * MIB} {ROOT}/kubepods.slice/{knob}", timeout=40)
            vm.run("headroomctl stop huge && headroomctl stop idle", check=True)
            wait_clean(vm)
    finally:
        vm.run("echo 0 > /proc/sys/vm/nr_hugepages")


def test_a_cpu_that_goes_offline_is_no_longer_given_out(vm):
    with Node(vm) as node:
        node.start(configuration({"kubeReserved": {"cpu": "500m"}}))
        vm.wait_until(f"grep -qx {weight(1500)} {ROOT}/kubepods.slice/cpu.weight", timeout=20)
        vm.run("echo 0 > /sys/devices/system/cpu/cpu1/online", check=True)
        try:
            vm.wait_until(f"grep -qx {weight(500)} {ROOT}/kubepods.slice/cpu.weight", timeout=40)
            assert node.status()["node"]["allocatable"]["cpu"] == "500m", node.status()["node"]
            refused = vm.run("headroomctl run --name big --request cpu=1 -- true")
            assert refused.code == 1 and "OutOfcpu" in refused.out, refused.out
        finally:
            vm.run("echo 1 > /sys/devices/system/cpu/cpu1/online", check=True)
        vm.wait_until(f"grep -qx {weight(1500)} {ROOT}/kubepods.slice/cpu.weight", timeout=40)
