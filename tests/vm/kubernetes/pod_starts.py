#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In the guest: when each pod's first container had a cgroup, and when headroom-kube had written what the kubelet said of it.

    pod_starts.py OUT

Appends to OUT, one JSON object a line, with the guest's monotonic clock as "t": {"started": UID} and {"known": UID}. It looks
every 20 ms and ends when it is killed.
"""

import json
import re
import sys
import time
from pathlib import Path

PODS = Path("/sys/fs/cgroup/kubepods.slice")
KNOWN = Path("/run/headroom-kube/pods")
UID = re.compile(r"-pod([0-9a-f_]+)\.slice$")
PERIOD = 0.02


def started() -> set[str]:
    """Pods that have a cgroup of a container, their sandbox's included."""
    found = set()
    for parent in (PODS, PODS / "kubepods-burstable.slice", PODS / "kubepods-besteffort.slice"):
        for pod in parent.glob("kubepods*-pod*.slice"):
            if uid := UID.search(pod.name):
                if any(pod.glob("cri-containerd-*.scope")):
                    found.add(uid[1].replace("_", "-"))
    return found


def known() -> set[str]:
    return {file.stem for file in KNOWN.glob("*.json")}


seen = {"started": set(), "known": set()}
with open(sys.argv[1], "a", buffering=1) as out:
    while True:
        for what, now in (("started", started()), ("known", known())):
            for uid in now - seen[what]:
                out.write(json.dumps({"t": time.monotonic(), what: uid}) + "\n")
            seen[what] |= now
        time.sleep(PERIOD)
