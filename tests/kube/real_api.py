#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headroom-kube, as built, against a real API server and its controllers, here, without a node: of KUBERNETES_BIN, or Debian's
Kubernetes 1.20 (see tests/vm/machine/kubernetes_release.py).

    real_api.py HEADROOM-KUBE

It has the token of the service account that our manifests make, and no right but their roles'. Of the node and its pods
there are only the objects: what a kubelet would say of them is said by the test.
"""

import contextlib
import http.client
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "vm")]

import client as clients  # noqa: E402
import real_scheduler  # noqa: E402
from machine.kubectl import kubectl as new_kubectl  # noqa: E402
from machine.kubernetes_release import find  # noqa: E402
from real_cluster import RealApi, wait  # noqa: E402
from scraper import free_port, headroomd, scrape  # noqa: E402

BUILT = ("base", "overlays/enforce", "overlays/everything")
NODE = f"/api/v1/nodes/{clients.NODE}"
SHOP = "/api/v1/namespaces/shop"


class Watch:
    """What the API server said of the shop's pods, and when."""

    def __init__(self, api: RealApi):
        self.seen: list[tuple[float, str, dict]] = []
        self.api = api
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            link = self.api.link()
            link.request("GET", f"{SHOP}/pods?watch=1")
            for line in link.getresponse():
                event = json.loads(line)
                self.seen.append((time.time(), event["type"], event["object"]))

    def first(self, holds) -> float | None:
        return next((at for at, what, pod in self.seen if holds(what, pod)), None)


def objects(text: str, *, daemon_sets: bool = True) -> list[str]:
    return [each for each in text.split("\n---\n") if each.strip() and (daemon_sets or "kind: DaemonSet\n" not in each)]


def take_the_manifests(api: RealApi) -> None:
    """--validate=false: appArmorProfile in a container's securityContext is younger than 1.20, which drops it."""
    built = {folder: new_kubectl("kustomize", HERE.parents[1] / "kubernetes" / folder).stdout for folder in BUILT}
    api.kubectl("apply", data=next(each for each in objects(built["base"]) if "kind: Namespace\n" in each))
    for folder, text in built.items():
        said = api.kubectl("apply", "--dry-run=server", "--validate=false", data=text).splitlines()
        assert len(said) == len(objects(text)) and all("(server dry run)" in line for line in said), (folder, said)
    api.kubectl("apply", data="\n---\n".join(objects(built["overlays/everything"], daemon_sets=False)))
    print("    taken: " + ", ".join(f"{len(objects(text))} objects of {folder}" for folder, text in built.items()))


def give_token(api: RealApi) -> None:
    api.token_file.write_text(api.token("headroom", "headroom-system"))


def furnish(api: RealApi) -> None:
    """A node, and a Deployment with a budget that lets none of its pods go."""
    api.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": clients.NODE}})
    api.make_namespace("shop")
    labels = {"app": "web"}
    spec = {"nodeName": clients.NODE, "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "web"}]}
    policy = "policy/v1" if api.release >= (1, 21) else "policy/v1beta1"
    api.make(f"/apis/{policy}/namespaces/shop/poddisruptionbudgets",
             {"apiVersion": policy, "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
              "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}})
    api.make("/apis/apps/v1/namespaces/shop/deployments",
             {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
              "spec": {"selector": {"matchLabels": labels},
                       "template": {"metadata": {"labels": labels}, "spec": spec}}})


def running_pod(api: RealApi) -> dict:
    """The one that stays; it is said to run, as its kubelet would."""
    def there():
        return [pod for pod in api.ask("GET", f"{SHOP}/pods")[1]["items"]
                if pod["status"]["phase"] != "Failed" and "deletionTimestamp" not in pod["metadata"]]
    pod, = wait(there, 60, "the controller makes no pod")
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    code, pod = api.ask("PATCH", f"{SHOP}/pods/{pod['metadata']['name']}/status", status, "application/strategic-merge-patch+json")
    assert code == 200, pod
    return pod


def evict_and_follow(api: RealApi, watch: Watch, client, after: str) -> dict:
    pod = running_pod(api)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    began = time.time()
    client.evict("shop", name, uid)
    events = f"{SHOP}/events?fieldSelector=involvedObject.uid%3D{uid},reason%3DEvicted"
    event, = wait(lambda: api.ask("GET", events)[1]["items"], 30, lambda: f"no Event; {client.state()}")
    assert event["source"] == {"component": "headroom", "host": clients.NODE}, event
    times = {"status": watch.first(lambda what, seen: seen["metadata"]["uid"] == uid and seen["status"].get("reason") == "Evicted"),
             "replaced": wait(lambda: watch.first(lambda what, seen: what == "ADDED" and seen["metadata"]["uid"] != uid and
                                                  seen["metadata"]["creationTimestamp"] >= pod["metadata"]["creationTimestamp"] and
                                                  watch_time(watch, seen) > began), 30, "it is not replaced")}
    if after != "status":
        times["gone"] = wait(lambda: watch.first(lambda what, seen: what == "DELETED" and seen["metadata"]["uid"] == uid), 30,
                             f"it is not gone; {client.state()}")
    wait(lambda: client.waiting() == 0, 30, lambda: f"something is left to tell; {client.state()}")
    assert times["status"], "its status was not reported"
    return {what: round(at - began, 3) for what, at in times.items()}


def watch_time(watch: Watch, pod: dict) -> float:
    return next(at for at, _, seen in watch.seen if seen is pod)


def follow_evictions(api: RealApi) -> dict:
    watch, times = Watch(api), {}
    for after in ("status", "evict", "delete"):
        with tempfile.TemporaryDirectory(prefix="headroom-kube-") as folder:
            with clients.Client(Path(folder), api, after=after, timeout="10s") as client:
                times[after] = evict_and_follow(api, watch, client, after)
        print(f"    {after}: seconds from the record to {', '.join(f'{what} {at}' for what, at in times[after].items())}")
    return times


def tell_of_the_node(api: RealApi) -> None:
    """Conditions by server-side apply, taints by merge; both taken back when they are not wanted any more."""
    def node():
        return api.ask("GET", NODE)[1]

    def condition():
        return next((each["status"] for each in node()["status"].get("conditions", []) if each["type"] == "HeadroomMemoryPressure"), None)

    def tainted():
        return "headroom.io/memory-pressure" in [each["key"] for each in node()["spec"].get("taints", [])]

    with tempfile.TemporaryDirectory(prefix="headroom-kube-") as folder:
        with clients.Client(Path(folder), api, timeout="10s", conditions=True, taints=True) as client:
            client.write_node(MemoryPressure=True)
            wait(lambda: condition() == "True" and tainted(), 40, lambda: f"the node does not say so: {client.state()}")
            client.write_node()
            wait(lambda: condition() == "False" and not tainted(), 40, lambda: f"the node still says so: {client.state()}")
        with clients.Client(Path(folder), api, timeout="10s"):
            wait(lambda: condition() is None, 40, "the conditions stayed")


def let_scrapers_in(api: RealApi) -> None:
    """Who may read the metrics is asked by TokenReview and SubjectAccessReview, with the rights of components/metrics-https."""
    built = new_kubectl("kustomize", HERE.parent / "vm/kubernetes/daemonset").stdout
    api.kubectl("apply", data="\n---\n".join(objects(built, daemon_sets=False)))
    tokens = {}
    for name in ("prometheus", "other"):
        api.make(f"{SHOP}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        tokens[name] = api.token(name, "shop")
    api.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "prometheus"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "headroom-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "shop"}]})
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="headroom-kube-") as folder, headroomd() as page:
        with clients.Client(Path(folder), api, timeout="10s", listen=page, metrics={"listen": f"127.0.0.1:{port}"}) as client:
            wait(lambda: client.state("metrics"), 30, lambda: f"no metrics are served: {client.state()}")
            for path in ("/metrics", "/metrics/cadvisor", "/metrics/resource"):
                answers = [scrape(port, path, token) for token in (tokens["prometheus"], tokens["other"], "unknown")]
                assert answers[0] == (200, f"of {path}\n") and [code for code, _ in answers[1:]] == [403, 401], (path, answers)


def main() -> int:
    clients.PROGRAM = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="headroom-api-") as folder, RealApi(Path(folder), find()) as api:
        print(f"ok   API server {api.ask('GET', '/version')[1]['gitVersion']}", flush=True)
        for step in (take_the_manifests, give_token, furnish, follow_evictions, tell_of_the_node, let_scrapers_in, *real_scheduler.STEPS):
            step(api)
            print(f"ok   {step.__name__}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
