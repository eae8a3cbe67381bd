#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In the guest: where kube-scheduler puts one pod after the other, and what it could know of NODE.

    placements.py OUT NODE NAMESPACE

Appends to OUT, one JSON object a line, with the guest's clock as "t": of each pod, at the time of its request, the node that it
got ("placed"); what headroomd says of the contention for CPUs whenever that changes ("contention"); and the annotation that
headroom-kube writes ("annotation"). A pod is deleted when it has a node. It ends when it is killed.
"""

import json
import sys
import threading
import time
import urllib.request

from api_link import ask, connect, events

HEADROOMD = "http://127.0.0.1:9750/api/scheduling"
NOW = {"gracePeriodSeconds": 0}
out, node, namespace = open(sys.argv[1], "a", buffering=1), sys.argv[2], sys.argv[3]
writing = threading.Lock()
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "one-"}, "spec": {
    "hostNetwork": True, "automountServiceAccountToken": False, "enableServiceLinks": False, "containers": [
        {"name": "main", "image": "docker.io/lab/workload:1", "imagePullPolicy": "Never", "args": ["--hold", "1M"],
         "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}]}}


def note(t: float, **what) -> None:
    with writing:
        out.write(json.dumps({"t": t, **what}) + "\n")


def watch_headroomd() -> None:
    last = None
    while True:
        try:
            seen = json.load(urllib.request.urlopen(HEADROOMD, timeout=5))["contention"]["cpu"]
        except OSError:
            seen = None
        if seen != last:
            note(time.time(), contention=seen)
        last = seen
        time.sleep(0.1)


def watch_node() -> None:
    last = None
    for event in events(f"/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D{node}"):
        said = event["object"]["metadata"].get("annotations", {}).get("headroom.io/status")
        if said and said != last:
            note(time.time(), annotation=json.loads(said))
        last = said


def place(link) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    began = time.time()
    name = ask(link, "POST", pods, POD)["metadata"]["name"]
    while not (placed := ask(link, "GET", f"{pods}/{name}")["spec"].get("nodeName")):
        time.sleep(0.05)
    note(began, placed=placed)
    ask(link, "DELETE", f"{pods}/{name}", NOW)


for watch in (watch_headroomd, watch_node):
    threading.Thread(target=watch, daemon=True).start()
own = connect()
while True:
    place(own)
    time.sleep(0.2)
