#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In the guest: nodes without a kubelet, which are ready for as long as this runs.

    hollow_nodes.py NAME...

Pods can be placed there and never run. To the scheduler they are as large as this machine, and their annotations headroom.io/status
say that they are worse than it while its pods wait for nothing, and better while they lose a quarter of their time.
"""

import datetime
import json
import sys
import time

from api_link import ask, connect

PERIOD = 10  # seconds, as a kubelet's
ROOM = {"cpu": "2", "memory": "1400Mi", "pods": "110"}
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


def now(unit: str) -> str:
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec=unit) + "Z"


def register(link, name: str) -> None:
    ask(link, "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    beat(link, name)
    status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": now("seconds"), "lastTransitionTime": now("seconds")}]}
    ask(link, "PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)


def beat(link, name: str) -> None:
    ask(link, "PATCH", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}?fieldManager=hollow&force=true", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now("microseconds")}}, APPLY)
    says = json.dumps({"time": now("seconds"), "cpuContention": 0.1, "memoryContention": 0, "memoryLeft": 0.1})
    ask(link, "PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": {"headroom.io/status": says}}}, MERGE)


link, names = connect(), sys.argv[1:]
for name in names:
    register(link, name)
while True:
    time.sleep(PERIOD)
    for name in names:
        beat(link, name)
