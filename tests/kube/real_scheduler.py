# SPDX-License-Identifier: Apache-2.0
"""Steps of real_api.py: where kube-scheduler itself places pods, with kubernetes/scheduler-extender.yaml as its configuration and
`headroom-kube extender` as its extender. Nodes are objects without a kubelet; what headroomd would read of one is said here."""

import contextlib
import json
import signal
import statistics
import tempfile
import time
import types
from pathlib import Path

import client as clients
import yaml
from real_cluster import RealApi, wait
from scraper import free_port, headroomd

CONFIGURATION = Path(__file__).resolve().parents[2] / "kubernetes/scheduler-extender.yaml"
QUEUE = "/api/v1/namespaces/queue"
HERE, OTHER = clients.NODE, "n2"  # headroom-kube reports on HERE
ROUNDS, REPORTS, CONTENTIONS = 30, 3, 4
CALM = {"cpuContention": 0, "memoryContention": 0, "memoryLeft": 0.8}
BUSY = {"cpuContention": 0.3, "memoryContention": 0, "memoryLeft": 0.2}
HALF = {"cpuContention": 0.1, "memoryContention": 0, "memoryLeft": 0.5}


# --- the cluster's parts ---


def offer_nodes(api: RealApi) -> None:
    """Two nodes that are ready and empty. A new node has the taint not-ready until a controller takes it off."""
    api.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OTHER}})
    for name in (HERE, OTHER):
        room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        change(api, name, {"spec": {"taints": None}})
        change(api, name, {"status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}}, "/status")
    api.make_namespace("queue")
    (api.folder / "extender-token").write_text(api.token("headroom-extender", "headroom-system"))


def change(api: RealApi, node: str, patch: dict, part: str = "") -> None:
    code, answer = api.ask("PATCH", f"/api/v1/nodes/{node}{part}", patch, "application/merge-patch+json")
    assert code == 200, answer


def annotate(api: RealApi, node: str, **values) -> None:
    change(api, node, {"metadata": {"annotations": {"headroom.io/status": clients.node_summary(**values)}}})


def scheduler_configuration(api: RealApi, ports: list[int]) -> str:
    """What we ship, for this cluster's version, with its paths and ports."""
    configuration = yaml.safe_load(CONFIGURATION.read_text())
    configuration["clientConnection"]["kubeconfig"] = str(api.folder / "admin.conf")
    configuration["leaderElection"]["leaderElect"] = False
    shipped, = configuration["extenders"]
    configuration["extenders"] = [shipped | {"urlPrefix": f"http://127.0.0.1:{port}"} for port in ports]
    if api.release < (1, 25):
        configuration["apiVersion"] = "kubescheduler.config.k8s.io/v1beta1"
    return json.dumps(configuration)


@contextlib.contextmanager
def scheduler(api: RealApi, *ports: int):
    file = api.folder / "scheduler.json"
    file.write_text(scheduler_configuration(api, list(ports)))
    child = api.run("kube-scheduler", f"--config={file}", "--secure-port=0", *(["--port=0"] if api.release < (1, 24) else []))
    try:
        place(api)  # it is there
        yield
    finally:
        child.kill()
        child.wait(30)


@contextlib.contextmanager
def headroom_kube(api, start, **settings):
    with tempfile.TemporaryDirectory(prefix="headroom-kube-") as folder:
        client = clients.Client(Path(folder), api, after="none", timeout="10s", **settings)
        try:
            start(client)
            yield client
        finally:
            client.kill(signal.SIGTERM)
            client.output.close()


@contextlib.contextmanager
def extender(api: RealApi):
    port = free_port()
    account = types.SimpleNamespace(url=api.url, ca=api.ca, token_file=api.folder / "extender-token")
    with headroom_kube(account, lambda client: client.start_extender(port), extender={"listen": f"127.0.0.1:{port}"}) as client:
        yield port, client


def reporter(api: RealApi, page: str, **scheduling):
    return headroom_kube(api, lambda client: client.start(takes_part=False), listen=page, scheduling=scheduling)


# --- pods ---


def add_pod(api: RealApi, requests: dict) -> str:
    spec = {"automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "web", "resources": {"requests": requests, "limits": requests}}]}
    return api.make(f"{QUEUE}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "pod-"}, "spec": spec})["metadata"]["name"]


def pod(api: RealApi, name: str) -> dict:
    return api.ask("GET", f"{QUEUE}/pods/{name}")[1]


def forget(api: RealApi, name: str) -> None:
    api.ask("DELETE", f"{QUEUE}/pods/{name}", {"gracePeriodSeconds": 0})


def place(api: RealApi, **requests: str) -> str:
    """The node of one more pod, which then goes."""
    name = add_pod(api, requests or {"cpu": "100m", "memory": "64Mi"})
    try:
        return wait(lambda: pod(api, name)["spec"].get("nodeName"), 60, f"{name} has no node")
    finally:
        forget(api, name)


def seconds_to_follow(api: RealApi, node: str, longest: float) -> float:
    """Pods come one after the other: from now until the last of them is made that goes elsewhere."""
    began, last, right = time.monotonic(), 0.0, 0
    while right < 5:
        made = time.monotonic() - began
        assert made < longest, f"pods still go elsewhere than {node}"
        if place(api) == node:
            right += 1
        else:
            last, right = made, 0
    return last


def why_not(api: RealApi, name: str) -> str:
    conditions = pod(api, name)["status"].get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), "")


# --- steps ---


def the_scheduler_follows_the_extenders_scores(api: RealApi) -> None:
    with extender(api) as (port, _), scheduler(api, port):
        took = []
        for i in range(ROUNDS):
            calm, busy = (HERE, OTHER) if i % 2 else (OTHER, HERE)
            annotate(api, busy, **BUSY)
            annotate(api, calm, **CALM)
            took.append(seconds_to_follow(api, calm, 10))
    assert max(took) < 2, took
    print(f"    {ROUNDS} times the other node was the calm one: the last pod on the busy one came after {statistics.median(took):.2f} s "
          f"(median), {max(took):.2f} s (longest)")


def calm_readings() -> dict:
    return {"contention": {"cpu": 0, "memory": 0}, "hard_threshold": None, "shortage_seconds": None,
            "memory": {"capacity": 8 << 30, "left": 6 << 30, "growth": 0}}


def contention_sends_pods_elsewhere(api: RealApi) -> None:
    """From headroomd's answer through the node's annotation to the scheduler, at moments that nothing is aligned to."""
    readings = calm_readings()
    left, returned = [], []
    annotate(api, HERE, **BUSY)  # until headroom-kube knows better
    with extender(api) as (port, _), scheduler(api, port), headroomd(readings) as page, reporter(api, page, statusAnnotation=True):
        for i in range(CONTENTIONS):
            annotate(api, OTHER, **HALF)
            seconds_to_follow(api, HERE, 60)
            # A number that changes is written too, at some time before.
            readings["memory"]["left"] = (6 - i % 2) << 30
            time.sleep(i * 1.3)
            readings["contention"] = {"cpu": 0.4, "memory": 0}
            left.append(seconds_to_follow(api, OTHER, 30))
            readings["contention"] = {"cpu": 0, "memory": 0}
            returned.append(seconds_to_follow(api, HERE, 120))
    assert max(left) < 2, left
    print(f"    the last pod on the node came {', '.join(f'{each:.2f}' for each in left)} s after headroomd's word of contention; pods "
          f"returned {', '.join(f'{each:.0f}' for each in returned)} s after its end")


def a_hard_threshold_closes_the_node(api: RealApi) -> None:
    """The same for a hard threshold; with only that node left, a pod waits for it."""
    readings = calm_readings()
    closed, opened = [], []
    annotate(api, OTHER, **HALF)
    with extender(api) as (port, _), scheduler(api, port), headroomd(readings) as page, reporter(api, page, statusAnnotation=True):
        seconds_to_follow(api, HERE, 60)
        for _ in range(REPORTS):
            time.sleep(11)  # one write in ten seconds
            readings["hard_threshold"] = "memory.available"
            closed.append(seconds_to_follow(api, OTHER, 30))
            if len(closed) == 1:
                change(api, OTHER, {"spec": {"unschedulable": True}})
                name = add_pod(api, {"cpu": "100m"})
                wait(lambda: "memory.available" in why_not(api, name), 30, lambda: f"the scheduler does not say why: {why_not(api, name)}")
                print(f"    the pod says: {why_not(api, name)}")
                forget(api, name)
                change(api, OTHER, {"spec": {"unschedulable": None}})
            readings["hard_threshold"] = None
            # Thirty seconds, or two minutes if it was met for long enough to be taken for a shortage to come.
            opened.append(seconds_to_follow(api, HERE, 240))
    assert max(closed) < 2, closed
    print(f"    the last pod on the node came {', '.join(f'{each:.2f}' for each in closed)} s after its threshold was met; "
          f"pods returned {', '.join(f'{each:.1f}' for each in opened)} s after it was not")


def an_extender_that_hangs_holds_nothing_up(api: RealApi) -> None:
    """Two extenders, of which one hangs and then is gone: pods are placed, and the other one counts."""
    annotate(api, HERE, **BUSY)
    annotate(api, OTHER, **CALM)
    with extender(api) as (port, _), extender(api) as (hanging, client), scheduler(api, port, hanging):
        assert place(api) == OTHER
        client.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            places = [place(api) for _ in range(5)]
            took = (time.monotonic() - began) / 5
        finally:
            client.process.send_signal(signal.SIGCONT)
        client.kill()
        places += [place(api) for _ in range(5)]
    assert set(places) == {OTHER}, places
    assert took < 2, took
    print(f"    {took:.2f} s for a pod while one extender of two hangs")


def batch_memory_is_placed_and_taken_back(api: RealApi) -> None:
    readings = {"contention": {"cpu": 0, "memory": 0.0}, "memory": {"capacity": 100 << 30, "left": 60 << 30, "batch": 52 << 30}}
    wanted = {"headroom.io/batch-memory": str(1 << 30)}
    with scheduler(api), headroomd(readings) as page:
        name = add_pod(api, wanted)
        wait(lambda: "batch-memory" in why_not(api, name), 30, "it is placed without an offer")
        with reporter(api, page, batchResources=True):
            wait(lambda: pod(api, name)["spec"].get("nodeName") == HERE, 60, lambda: f"it is not placed: {why_not(api, name)}")
            assert place(api, **wanted) == HERE
            began = time.monotonic()
            readings["contention"] = {"cpu": 0, "memory": 0.5}
            wait(lambda: api.ask("GET", f"/api/v1/nodes/{HERE}")[1]["status"]["allocatable"]["headroom.io/batch-memory"] == "0", 10,
                 "it is not taken back")
            took = time.monotonic() - began
            late = add_pod(api, wanted)
            said = wait(lambda: why_not(api, late), 30, "the next pod is not refused")
            assert "headroom.io/batch-memory" in said, said
        for each in (name, late):
            forget(api, each)
    assert took < 1, took
    print(f"    taken back {took:.2f} s after the contention; the next pod: {said}")


STEPS = (offer_nodes, the_scheduler_follows_the_extenders_scores, contention_sends_pods_elsewhere, a_hard_threshold_closes_the_node,
         an_extender_that_hangs_holds_nothing_up, batch_memory_is_placed_and_taken_back)
