# SPDX-License-Identifier: Apache-2.0
"""The reserve holds: a service of the node keeps its pace and its pages while pods take all they can get."""

import json

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
MEMORY = "2G"
SLICE = "kubereserved.slice"
MIB = 1 << 20
SECONDS = 12
BURNERS = 8
# 4 ms of CPU every 10 ms, of a reserve of half a CPU; 100 MiB held, and 60 MiB of a file.
PROBE = f"/opt/headroom/bin/workload --hold 100M --map /root/text --probe {SECONDS}"
BURN = "while :; do :; done"
READ = "while :; do cat /root/data > /dev/null; done"


def configuration():
    config = json.loads(kubelet_configuration(hard="100Mi", slices={"mode": "enforce"}))
    return json.dumps(config | {
        "enforceNodeAllocatable": ["pods", "kube-reserved"], "kubeReservedCgroup": f"/{SLICE}",
        "kubeReserved": {"cpu": "500m", "memory": "300Mi"}, "featureGates": {"MemoryQoS": True}})


def probe(vm, slice):
    """p50, p99 and worst time from due to done in milliseconds, and pages read again."""
    found = vm.run(f"systemd-run --quiet --wait --pipe --collect --slice={slice} {PROBE}", timeout=90, check=True).out
    p50, p99, worst, faults, _ = (float(word) for word in found.split())
    return {"p50": p50, "p99": p99, "worst": worst, "faults": int(faults)}


def pods_that_take_all(node):
    pods = [node.run_script(Pod(f"burn-{i}", "burstable", {"cpu": "100m"}), BURN) for i in range(BURNERS)]
    return pods + [node.run_script(Pod("reader", "burstable", {"memory": "64Mi"}), READ)]


def test_a_service_in_the_reserve_keeps_its_pace_and_its_pages(vm):
    vm.run("head -c 60M /dev/urandom > /root/text; truncate -s 3G /root/data; "
           "sync; echo 3 > /proc/sys/vm/drop_caches", timeout=240, check=True)
    with Node(vm) as node:
        node.start(configuration())
        vm.wait_until("headroomctl slices > /dev/null", timeout=30)
        alone = probe(vm, SLICE)
        pods = pods_that_take_all(node)
        vm.run("sleep 5")
        enforced = probe(vm, SLICE)
        evicted = [record["pod"]["name"] for record in node.evictions()]
        vm.stop(*(pod.unit for pod in pods))
        node.stop()
        # The same without us: what runs on a host is services side by side.
        vm.run(f"systemctl stop {SLICE} kubepods.slice; rm -rf /run/systemd/system.control; systemctl daemon-reload", timeout=60)
        others = [f"headroom-test-other-{i}.service" for i in range(BURNERS + 1)]
        for unit in others:
            vm.spawn(READ if unit == others[-1] else BURN, unit=unit)
        vm.run("sleep 5")
        without = probe(vm, "system.slice")
        vm.stop(*others)
    for name, figures in (("alone", alone), ("beside pods, in the reserve", enforced), ("beside them, without slices", without)):
        print(f"    {name}: p50 {figures['p50']:.1f} ms, p99 {figures['p99']:.1f} ms, worst {figures['worst']:.1f} ms, "
              f"{figures['faults']} pages read again")
    assert evicted == [] and node.kernel_oom_kills() == 0
    assert enforced["p99"] < without["p99"] / 5, "it falls behind without, and keeps its pace with the reserve"
    assert enforced["faults"] <= alone["faults"] + 50, "its pages stay"
