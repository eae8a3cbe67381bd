# SPDX-License-Identifier: Apache-2.0
"""Three machines, each a node, and the control plane on the first: where kube-scheduler, with headroom's extender, puts pods while
the CPUs of that one are contended, and what is done there while the control plane is dead.

`make test-kubernetes`; the cluster is this file's own.
"""

import contextlib
import json
import os
import time
from pathlib import Path

import cluster as clusters
import replacement
from cluster_node import ACCOUNT, ClusterNode
from lab import Lab

MEMORY, CPUS, PORTS = "4G", 2, 2
ROOT = Path(__file__).resolve().parents[3]
BURNERS, ROUNDS = 6, 3
CONTENDED = 0.25  # the extender gives no point for this
OUT = "/run/placements.jsonl"
EXTENDER = "127.0.0.1:9752"
DEAD = float(os.environ.get("HEADROOM_DEAD_SECONDS", "600"))  # without a control plane
CONTROL_PLANE = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")


def start_extender(cluster) -> None:
    """As its DaemonSet runs it, and the scheduler with the configuration that we ship."""
    vm = cluster.vm
    answer = cluster.ask("POST", f"{ACCOUNT}-extender/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
    assert answer.code == 201, answer
    vm.put(answer.body["status"]["token"].encode(), "/run/extender-token", mode="0600")
    api = {"url": clusters.API, "caFile": f"{clusters.ETC}/ca.crt", "tokenFile": "/run/extender-token", "timeout": "20s"}
    vm.put(json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "headroom": {
        "kubernetes": {"api": api, "extender": {"listen": EXTENDER}}}}).encode(), "/run/extender.yaml")
    vm.spawn("exec /opt/headroom/bin/headroom-kube extender --config /run/extender.yaml", unit="headroom-extender.service")
    vm.wait_until(f"curl -sf http://{EXTENDER}/readyz", timeout=120)
    shipped = (ROOT / "kubernetes/scheduler-extender.yaml").read_text().replace("leaderElect: true", "leaderElect: false")
    if cluster.release < (1, 25):
        shipped = shipped.replace("config.k8s.io/v1\n", "config.k8s.io/v1beta1\n")
    vm.put(shipped.encode(), f"{clusters.ETC}/scheduler.yaml")
    vm.stop("kube-scheduler")
    cluster.start_scheduler(f"--config={clusters.ETC}/scheduler.yaml")


@contextlib.contextmanager
def workers(cluster):
    """As many further machines as have a port, with both programs of headroom; they leave the cluster at the end."""
    with contextlib.ExitStack() as stack:
        names = []
        for number in range(PORTS):
            vm = stack.enter_context(Lab(kernel=cluster.vm.kernel, memory=MEMORY, cpus=CPUS, payload=cluster.vm.payload,
                                         plugged_into=cluster.vm.port(number), exclusive=False))
            names.append(cluster.join(vm, number + 1).name)
            stack.callback(cluster.ask, "DELETE", f"/api/v1/nodes/{names[-1]}")
            node = stack.enter_context(ClusterNode(cluster, vm))
            node.start_both(scheduling={"statusAnnotation": True})
            occupy(cluster, names[-1])
        yield names


def occupy(cluster, name: str) -> None:
    """Requests of a pod on that node, so that the scheduler prefers the first one while no CPU is contended."""
    spec = replacement.pod_spec("--hold", "1M", request="300Mi")
    spec["nodeSelector"] = {"kubernetes.io/hostname": name}
    spec["containers"][0]["resources"]["requests"]["cpu"] = "500m"
    path = f"/apis/apps/v1/namespaces/{replacement.NAMESPACE}/deployments"
    answer = cluster.ask("POST", path, replacement.deployment(f"on-{name}", spec))
    assert answer.code == 201, answer
    cluster.wait(f"a pod runs on {name}", lambda: replacement.running(cluster, f"on-{name}"), 300)


def frozen_burners(cluster) -> str:
    """Pods of next to no weight that want all of the CPUs when they are thawed: for the cluster's own programs, which have a hundred
    times as much, the machine is as before. Their cgroup.freeze files."""
    spec = replacement.pod_spec("--hold", "16M", "--churn", "--after", "5", request="1Mi")
    spec["nodeSelector"] = {"kubernetes.io/hostname": cluster.node}
    spec["containers"][0]["resources"]["requests"]["cpu"] = "1m"  # else the scheduler counts with 100m
    path = f"/apis/apps/v1/namespaces/{replacement.NAMESPACE}/deployments"
    answer = cluster.ask("POST", path, replacement.deployment("burner", spec, BURNERS))
    assert answer.code == 201, answer

    def running() -> list[dict]:
        pods = [pod for pod in cluster.pods(replacement.NAMESPACE, "burner") if clusters.condition(pod, "Ready") == "True"]
        return pods if len(pods) == BURNERS else []

    pods = cluster.wait("the burners run", running)
    files = " ".join(f"{replacement.scope_of(cluster, pod)}/cgroup.freeze" for pod in pods)
    freeze(cluster.vm, files, 1)
    return files


def freeze(vm, files: str, value: int) -> float:
    """The guest's clock right before."""
    return float(vm.run(f"date +%s.%N; for file in {files}; do echo {value} > $file; done", check=True).out.split()[0])


def place_pods(cluster) -> None:
    """One after the other, until placements.service is stopped."""
    cluster.vm.put(b"", OUT)
    cluster.vm.spawn(f"exec /opt/headroom/bin/python3 /opt/headroom/bin/placements.py {OUT} {cluster.node} {replacement.NAMESPACE} "
                     "2>/run/placements.log", unit="placements.service")


def seen_since(vm, at: float, what: str) -> list[dict]:
    lines = [json.loads(line) for line in vm.get(OUT).decode().splitlines() if line.endswith("}")]
    return [each for each in lines if what in each and each["t"] >= at]


def last_places(vm, at: float, count: int = 5) -> set[str]:
    """Of the last pods that were made since then; empty: not so many were."""
    places = [each["placed"] for each in seen_since(vm, at, "placed")]
    return set(places[-count:]) if len(places) >= count else set()


def contend(cluster, files: str) -> dict:
    """One time of contention: seconds from its begin to headroomd's word, from that to the annotation and to the last pod that was made
    and is placed here, and from its end until pods are placed here again."""
    vm = cluster.vm
    began = freeze(vm, files, 0)
    cluster.wait("pods go elsewhere", lambda: (places := last_places(vm, began)) and cluster.node not in places, 120)
    ended = freeze(vm, files, 1)
    known = next(each["t"] for each in seen_since(vm, began, "contention") if (each["contention"] or 0) >= CONTENDED)
    annotated = next(each["t"] for each in seen_since(vm, began, "annotation") if each["annotation"].get("cpuContention", 0) >= CONTENDED)
    here = [each["t"] for each in seen_since(vm, began, "placed") if each["placed"] == cluster.node and each["t"] < ended]
    cluster.wait("pods come back", lambda: last_places(vm, ended) == {cluster.node}, 300)
    back = next(each["t"] for each in seen_since(vm, ended, "placed") if each["placed"] == cluster.node)
    return {"known": known - began, "annotated": annotated - known, "last": max(here, default=known) - known, "back": back - ended}


def test_pods_go_elsewhere_while_the_cpus_are_contended(vm):
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both(scheduling={"statusAnnotation": True})
        start_extender(cluster)
        files = frozen_burners(cluster)
        with workers(cluster) as others:
            place_pods(cluster)
            cluster.wait("pods come here while nothing waits", lambda: last_places(vm, 0) == {cluster.node}, 300)
            rounds = [contend(cluster, files) for _ in range(ROUNDS)]
            elsewhere = {each["placed"] for each in seen_since(vm, 0, "placed")} - {cluster.node}
            vm.stop("placements", "headroom-extender")
            for name in others:
                cluster.ask("DELETE", f"/apis/apps/v1/namespaces/{replacement.NAMESPACE}/deployments/on-{name}")
        for each in rounds:
            print("    {known:.1f} s after the load headroomd said so, {annotated:.2f} s later the node's annotation; the last pod here was made "
                  "{last:.2f} s after headroomd's word, pods were back {back:.0f} s after the end (emulated)".format(**each))
        cluster.ask("DELETE", f"/apis/apps/v1/namespaces/{replacement.NAMESPACE}/deployments/burner")
        freeze(vm, files, 0)
        assert node.evictions() == [], node.evictions()
        assert max(each["last"] for each in rounds) <= 2, rounds
        assert elsewhere and elsewhere <= set(others), elsewhere


def test_a_dead_control_plane_changes_nothing_here(vm):
    """A pod fills memory meanwhile: it is evicted as ever, nothing else is, and the API server learns of it afterwards."""
    cluster = clusters.of(vm)
    replacement.furnish(cluster)
    with ClusterNode(cluster) as node:
        node.start_both()
        calm = replacement.run_once(cluster, replacement.FAST)
        assert (calm["kernel_oom_kills"], calm["wrong_victims"]) == (0, 0), calm
        before, damage = len(node.evictions()), replacement.damage(cluster)
        replacement.scale(cluster, 1, replacement.FAST)
        hog = cluster.wait("the hog runs", lambda: replacement.running(cluster, "hog"), 300)
        vm.run(f"systemctl kill -s KILL {' '.join(CONTROL_PLANE)}", check=True)
        died = time.monotonic()
        node.wait_for_evictions(before + 1, timeout=120)
        time.sleep(max(0.0, died + DEAD - time.monotonic()))
        # Its kubelet does not know, and starts the container again: it may be evicted more than once.
        records = node.evictions()[before - 1:]
        assert {each["pod"]["uid"] for each in records[1:]} == {hog["metadata"]["uid"]}, records
        cluster.start_control_plane()
        cluster.wait("the node is ready", cluster.ready)
        cluster.wait("the API server has the event", lambda: {
            each["source"].get("component") for each in replacement.events_of_eviction(cluster, hog["metadata"]["uid"])} == {"headroom"}, 300)
        node.wait_for(node.report_status, lambda status: status["pending"] == 0, timeout=120)
        cluster.wait("a successor runs", lambda: replacement.successor(cluster, hog), 300)
        replacement.scale(cluster, 0)
        replacement.clear_away(cluster)
        assert (replacement.kernel_oom_kills(vm), replacement.damage(cluster)) == (0, damage)
        for what, record in zip(("with", *["without"] * (len(records) - 1)), records):
            print(f"    {what} a control plane: {record['latency']['crossing_to_decision_ms']:.1f} ms to the decision, "
                  f"{record['latency']['decision_to_signal_ms']:.1f} ms to SIGKILL")
