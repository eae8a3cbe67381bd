# SPDX-License-Identifier: Apache-2.0
"""A Deployment's pod fills memory, it is evicted, the controller replaces it: when what of that happened.

The witness in the guest says when; neither headroomd's nor the kubelet's word is taken for it.
"""

import json
import statistics

from cluster import condition
from worker import IMAGE, THRESHOLD_MIB

NAMESPACE = "shop"
OUT = "/run/witness.jsonl"
MIB = 1 << 20
SLOW, FAST, FULL = "40 MiB/s", "200 MiB/s", "full speed"
RATES = {SLOW: "40M", FAST: "200M", FULL: "0"}
SAMPLE, LINE = 0.2, 1.0  # seconds: at most between two samples, for they are taken on a busy machine; to draw a line through
WAIT = 20  # seconds before it begins: who evicts it must have seen it first


def pod_spec(*workload: str, request: str) -> dict:
    return {"hostNetwork": True, "automountServiceAccountToken": False, "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 2, "containers": [
                {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "args": list(workload),
                 "resources": {"requests": {"memory": request}}}]}


def hog_spec(speed: str) -> dict:
    return pod_spec("--hold", "1M", "--after", str(WAIT), "--rate", RATES[speed], "--until", "4G", request="32Mi")


def deployment(name: str, spec: dict, replicas: int = 1) -> dict:
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": spec}}}


def budget(name: str, policy: str) -> dict:
    """None may be taken away on purpose."""
    return {"apiVersion": policy, "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}}


def furnish(cluster) -> None:
    """The namespace, a bystander within its request, and a hog, with a budget, of which there is none yet."""
    things = (
        ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        (f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
         deployment("web", pod_spec("--hold", "60M", request="100Mi"))),
        (f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
         deployment("hog", hog_spec(SLOW), 0)),
        (f"/apis/{cluster.policy}/namespaces/{NAMESPACE}/poddisruptionbudgets", budget("hog", cluster.policy)))
    for path, thing in things:
        answer = cluster.ask("POST", path, thing)
        assert answer.code in (201, 409), answer
    cluster.wait("the bystander runs", lambda: running(cluster, "web"))


def scale(cluster, replicas: int, speed: str = SLOW) -> None:
    answer = cluster.ask("PATCH", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/hog",
                         {"spec": {"replicas": replicas, "template": {"spec": hog_spec(speed)}}})
    assert answer.code == 200, answer


def running(cluster, app: str, namespace: str = NAMESPACE) -> dict | None:
    """Its one pod that runs and stays."""
    return next((pod for pod in cluster.pods(namespace, app)
                 if condition(pod, "Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
                 and pod["status"]["phase"] == "Running"), None)


def scope_of(cluster, pod: dict, status: dict | None = None) -> str:
    """The cgroup of a container, the first one's unless another's status is given; found by what the API says its id is."""
    container = (status or pod["status"]["containerStatuses"][0])["containerID"].removeprefix("containerd://")
    found = cluster.vm.run(f"find /sys/fs/cgroup/kubepods.slice -type d -name 'cri-containerd-{container}.scope'", check=True)
    assert len(found.out.splitlines()) == 1, found.out
    return found.out.strip()


def run_once(cluster, speed: str = SLOW) -> dict:
    """One hog, from its start to that of its successor, or to a kill by the kernel; then none again."""
    vm = cluster.vm
    killed_before, damage_before = kernel_oom_kills(vm), damage(cluster)
    scale(cluster, 1, speed)
    hog = cluster.wait("the hog runs", lambda: running(cluster, "hog"), 300)
    vm.run(f"rm -f {OUT}")
    witness = vm.spawn(f"exec /opt/headroom/bin/python3 /opt/headroom/bin/witness.py {OUT} {scope_of(cluster, hog)} {NAMESPACE}",
                       unit="witness.service", properties=("Nice=-5", "OOMScoreAdjust=-999"))
    try:
        cluster.wait("a successor runs", lambda: successor(cluster, hog) or kernel_oom_kills(vm) > killed_before, 300)
        vm.run("sleep 1")
    finally:
        vm.stop(witness)
        scale(cluster, 0, speed)
    seen = [json.loads(line) for line in vm.get(OUT).decode().splitlines() if line.endswith("}")]
    kernel = kernel_oom_kills(vm) - killed_before
    wrong = damage(cluster) - damage_before
    clear_away(cluster)
    return {"kernel_oom_kills": kernel, "wrong_victims": wrong} | times_of(cluster, hog["metadata"]["uid"], seen)


def kernel_oom_kills(vm) -> int:
    """Of the whole machine since it started, inside cgroups too."""
    return int(vm.run("grep '^oom_kill ' /proc/vmstat", check=True).out.split()[1])


def damage(cluster) -> int:
    """Pods that are no hogs and have failed, and restarts of their containers."""
    others = [pod for pod in cluster.pods(NAMESPACE) if pod["metadata"].get("labels", {}).get("app") != "hog"]
    restarts = sum(each["restartCount"] for pod in others for each in pod["status"].get("containerStatuses", []))
    return restarts + sum(pod["status"]["phase"] == "Failed" for pod in others)


def successor(cluster, hog: dict) -> bool:
    pod = running(cluster, "hog")
    return bool(pod) and pod["metadata"]["uid"] != hog["metadata"]["uid"]


def events_of_eviction(cluster, uid: str) -> list[dict]:
    """Of any component; the pod itself may be gone by then."""
    events = cluster.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/events").body.get("items", [])
    return [each for each in events if each["involvedObject"].get("uid") == uid and each["reason"] == "Evicted"]


def clear_away(cluster) -> None:
    """Failed pods stay where a kubelet evicted them; the node says for a while that it is short of memory."""
    for pod in cluster.pods(NAMESPACE, "hog"):
        if pod["status"]["phase"] == "Failed":
            cluster.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}",
                        {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    cluster.wait("the hogs are gone", lambda: not cluster.pods(NAMESPACE, "hog"), 300)
    node = f"/api/v1/nodes/{cluster.node}"
    cluster.wait("the pressure is over", lambda: condition(cluster.ask("GET", node).body, "MemoryPressure") == "False", 300)


def times_of(cluster, uid: str, seen: list[dict]) -> dict:
    """Seconds from the crossing of the threshold, by the guest's clock."""
    limit = int(cluster.vm.run("cat /sys/fs/cgroup/kubepods.slice/memory.max", check=True).out)
    crossed = crossing(seen, limit - THRESHOLD_MIB * MIB)
    pods = [each for each in seen if "pod" in each]
    dead = next(each["t"] for each in seen if each.get("dead"))
    failed = next((each for each in pods if each["uid"] == uid and each["phase"] == "Failed"), None)
    others = [each for each in pods if each["uid"] != uid and each["pod"].startswith("hog-") and each["t"] > crossed]
    times = {"crossed": crossed, "dead": dead, "failed": failed and failed["t"], "created": others[0]["t"] if others else None,
             "running": next((each["t"] for each in others if each["phase"] == "Running"), None)}
    most = max(each["pods"] for each in seen if "pods" in each)
    return {"uid": uid, "crossed_at": crossed, "reason": failed and failed["reason"],
            "overshoot_mib": round((most - (limit - THRESHOLD_MIB * MIB)) / MIB),
            "seconds": {name: round(at - crossed, 3) for name, at in times.items() if at and name != "crossed"}}


def crossing(seen: list[dict], bound: int) -> float:
    """On the line between the last sample below and the first above; who acts within a sample is seen at neither: on the line
    that the last samples make."""
    samples = [each for each in seen if "pods" in each]
    for before, after in zip(samples, samples[1:]):
        if before["pods"] <= bound < after["pods"]:
            return on_the_line(before, after, bound)
    most = max(samples, key=lambda each: each["pods"])
    earlier = next(each for each in reversed(samples) if each["t"] < most["t"] - LINE)
    at = on_the_line(earlier, most, bound)
    assert at < most["t"] + 2 * SAMPLE, f"the pods never held more than {bound >> 20} MiB: {most['pods'] >> 20}"
    return at


def on_the_line(before: dict, after: dict, bound: int) -> float:
    return before["t"] + (bound - before["pods"]) / (after["pods"] - before["pods"]) * (after["t"] - before["t"])


def medians(runs: list[dict]) -> dict:
    names = [name for name in runs[0]["seconds"] if all(name in run["seconds"] for run in runs)]
    return {name: round(statistics.median(run["seconds"][name] for run in runs), 3) for name in names}


