# SPDX-License-Identifier: Apache-2.0
"""A service in kube-reserved and a pod, both of which take more and less by turns, recorded for a quarter of an hour.

What `headroomctl advise reserves` says of the recording is compared with what a shell read of cgroupfs meanwhile, and then it is
enforced under the same load.
"""

import json

from node import Node, Pod, kubelet_configuration

SHAPE = {"memory": "2G", "cpus": 2}
SLICE, SERVICE = "kubereserved.slice", "headroom-test-agent.service"
# Between 60 and 100 MiB, and some twentieths of a CPU.
AGENT = "while :; do timeout 6 /opt/headroom/bin/workload --hold 60M --rate 20M --until 100M; sleep 2; done"
# Far more than that, and a CPU: none of it is the reserve's.
POD = "while :; do timeout 9 /opt/headroom/bin/workload --hold 100M --rate 80M --until 600M & timeout 9 sh -c 'while :; do :; done'; sleep 3; done"
STOP, SEEN = "/run/watch-ends", "/run/watched"
WATCH = f"""cd /sys/fs/cgroup/{SLICE}; memory=0; tasks=0
while [ ! -e {STOP} ]; do
    read current < memory.current; read count < pids.current
    while read key value; do [ $key = inactive_file ] && inactive=$value; done < memory.stat
    [ $((current - inactive)) -gt $memory ] && memory=$((current - inactive))
    [ $count -gt $tasks ] && tasks=$count
    sleep 0.5
done
echo $memory $tasks > {SEEN}"""
# Both look now and then: at a ramp of 20 MiB a second they differ by what fits between two looks, at its end they do not.
SAME_MEMORY, SAME_CPU = 0.05, 0.10


def configuration(**keys) -> str:
    config = json.loads(kubelet_configuration(hard="100Mi", slices={"mode": "enforce"}))
    return json.dumps(config | {"enforceNodeAllocatable": ["pods"], "kubeReservedCgroup": f"/{SLICE}",
                                "kubeReserved": {"cpu": "500m", "memory": "300Mi", "pid": "500"}} | keys)


def cpu_seconds(vm) -> float:
    return int(vm.run(f"awk '/^usage_usec/ {{print $2}}' /sys/fs/cgroup/{SLICE}/cpu.stat", check=True).out) / 1e6


def uptime(vm) -> float:
    return float(vm.run("cut -d' ' -f1 /proc/uptime", check=True).out)


def start_load(node: Node) -> list[Pod]:
    node.vm.spawn(AGENT, unit=SERVICE, slice=SLICE)
    return [node.run_script(Pod("wave", "burstable", {"memory": "600Mi", "cpu": "500m"}), POD)]


def record(node: Node, seconds: float) -> dict:
    """What the shell read: the highest memory and tasks, and the mean CPUs."""
    vm = node.vm
    vm.spawn(WATCH, unit="headroom-test-watch.service")
    began, used = uptime(vm), cpu_seconds(vm)
    vm.run(f"headroomctl record --for {seconds:.0f}s -o /var/tmp/reserves.rec", timeout=20 * 60 + 4 * seconds, check=True)
    cpus = (cpu_seconds(vm) - used) / (uptime(vm) - began)
    vm.run(f"touch {STOP}; while [ ! -e {SEEN} ]; do sleep 0.1; done", check=True)
    memory, tasks = map(int, vm.run(f"cat {SEEN}", check=True).out.split())
    return {"memory": memory, "pid": tasks, "cpu": round(cpus, 4)}


def enforce(node: Node, advised: dict, seconds: float) -> dict:
    """How often the reserve's cgroups reached their limit while what was advised is one."""
    vm = node.vm
    events = f"awk '/^(max|oom_kill) / {{print $2}}' /sys/fs/cgroup/{SLICE}/memory.events"
    before = [int(each) for each in vm.run(events, check=True).out.split()]
    node.configure(configuration(enforceNodeAllocatable=["pods", "kube-reserved"], kubeReserved=advised))
    vm.run("systemctl restart headroomd.service", timeout=60, check=True)
    vm.wait_until("headroomctl slices > /dev/null", timeout=30)
    limit = int(vm.run(f"cat /sys/fs/cgroup/{SLICE}/memory.max", check=True).out)
    vm.run(f"sleep {seconds:.0f}", timeout=20 * 60, check=True)
    after = [int(each) for each in vm.run(events, check=True).out.split()]
    return {"limit": limit, "at_limit": after[0] - before[0], "oom_kills": after[1] - before[1]}


def run(vm, seconds: float, enforced_seconds: float) -> dict:
    """{kernel, samples, cgroups, advised, peak, watched, limit, at_limit, oom_kills, evictions, died}"""
    vm.run(f"swapoff -a; rm -f {STOP} {SEEN}", check=True)
    with Node(vm) as node:
        node.start(configuration())
        vm.wait_until("headroomctl slices > /dev/null", timeout=30)
        pods = start_load(node)
        try:
            watched = record(node, seconds)
            advice = json.loads(vm.run("headroomctl advise reserves --json /var/tmp/reserves.rec", check=True, timeout=60).out)
            kube = advice["kubeReserved"]
            advised = {name: kube[name]["advised"] for name in ("cpu", "memory", "pid")}
            row = {"kernel": vm.run("uname -r").out.strip(), "samples": advice["samples"], "cgroups": kube["cgroups"], "advised": advised,
                   "peak": {name: kube[name]["peak"] for name in ("memory", "pid")} | {"cpu": kube["cpu"]["median"]}, "watched": watched}
            row |= enforce(node, advised, enforced_seconds)
            died = [unit for unit in (SERVICE, *(pod.unit for pod in pods)) if vm.run(f"systemctl is-active --quiet {unit}").code != 0]
            return row | {"evictions": len(node.evictions()), "died": died}
        finally:
            vm.stop(SERVICE, *(pod.unit for pod in pods))
            vm.run(f"touch {STOP}; systemctl stop {SLICE}; rm -f /var/tmp/reserves.rec; true", timeout=60)


def faults(row: dict) -> list[str]:
    wrong = [f"{key}: {row[key]}" for key in ("at_limit", "oom_kills", "evictions", "died") if row[key]]
    if row["cgroups"] != [f"/{SLICE}"]:
        wrong.append(f"the reserve's cgroups: {row['cgroups']}")
    for name, same in (("memory", SAME_MEMORY), ("cpu", SAME_CPU), ("pid", 0)):
        if abs(row["peak"][name] - row["watched"][name]) > same * row["watched"][name]:
            wrong.append(f"{name}: {row['peak'][name]} in the recording, {row['watched'][name]} in cgroupfs")
    return wrong
