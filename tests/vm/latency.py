# SPDX-License-Identifier: Apache-2.0
"""A latency-bound service in a pod: it has the same work to do at equal intervals, and measures from when each piece of work was
due to when it was done. For test_cpu_burst.py, bench-burst and bench-forecast.
"""

import json
import statistics

from node import Node, Pod

# Arguments: name, seconds of CPU for each piece of work, interval, duration of a run, runs, MiB of new memory that each piece of work
# fills. A second passes between two runs, and before the first one: what the interpreter's start took of the quota has then been saved
# again.
SERVICE = """
import json, sys, time
name = sys.argv[1]
work, interval, duration = map(float, sys.argv[2:5])
for run in range(int(sys.argv[5])):
    time.sleep(1)
    latencies, due = [], time.monotonic()
    end = due + duration
    while due < end:
        time.sleep(max(0, due - time.monotonic()))
        began, memory = time.thread_time(), b"x" * (int(sys.argv[6]) << 20)
        while time.thread_time() - began < work:
            pass
        latencies.append(time.monotonic() - due)
        due += interval
    json.dump(latencies, open(f"/run/latency-{name}-{run}.json", "w"))
"""


def install(vm) -> None:
    vm.put(SERVICE.encode(), "/run/service.py")


def serve(node: Node, pod: Pod, work: float, interval: float, times: int, duration: float, quota: str = "", mebibytes: int = 0) -> Pod:
    """So many times for so long, each with results of its own: NAME-0, NAME-1, ... The quota is the pod's and its container's."""
    if quota:
        node.vm.run(f"systemctl set-property --runtime {pod.slice} CPUQuota={quota}", check=True)
    run = f"/opt/headroom/bin/python3 /run/service.py {pod.name} {work} {interval} {duration} {times} {mebibytes}"
    return node.run_script(pod, f"{run}; exec sleep 6000", *([f"CPUQuota={quota}"] if quota else []))


def latencies(node: Node, name: str, timeout: float) -> list[float]:
    node.vm.wait_until(f"[ -s /run/latency-{name}.json ]", timeout=timeout)
    return json.loads(node.vm.run(f"cat /run/latency-{name}.json", check=True).out)


def milliseconds(values: list[float]) -> dict:
    ordered = sorted(values)
    return {"p50_ms": round(1000 * statistics.median(ordered), 1),
            "p99_ms": round(1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1)}


def throttled_periods(node: Node, pod: Pod) -> int:
    return int(node.vm.run(f"awk '/^nr_throttled/ {{s += $2}} END {{print s}}' {pod.cgroup}/cpu.stat {pod.cgroup}/{pod.unit}/cpu.stat",
                           check=True).out)


def bursts(node: Node, pod: Pod) -> list[int]:
    """cpu.max.burst of the pod and of its container, in microseconds."""
    return [int(line) for line in node.vm.run(f"cat {pod.cgroup}/cpu.max.burst {pod.cgroup}/{pod.unit}/cpu.max.burst", check=True).out.split()]


def seconds_until_withdrawn(node: Node, pod: Pod, loops: int) -> float:
    """Starts busy loops in another pod; returns when the burst is gone, after how long, by the guest's clock."""
    hogs = Pod("contenders")
    script = " ".join("(while :; do :; done) &" for _ in range(loops))
    node.run_script(hogs, f"cut -d' ' -f1 /proc/uptime > /run/contended; {script} wait")
    try:
        out = node.vm.run(f"""
            until [ -s /run/contended ]; do sleep 0.02; done
            while [ "$(cat {pod.cgroup}/cpu.max.burst)" != 0 ]; do sleep 0.02; done
            echo $(cat /run/contended) $(cut -d' ' -f1 /proc/uptime)
            """, timeout=60, check=True).out
    finally:
        node.forget(hogs)
        node.vm.run("rm -f /run/contended")
    began, ended = map(float, out.split())
    return ended - began
