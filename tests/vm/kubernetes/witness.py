#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""In the guest: what memory, a container and the API's pods did, and when, without any of our code.

    witness.py OUT SCOPE NAMESPACE

Appends to OUT, one JSON object a line, with the guest's clock as "t": every 20 ms the working set of all pods
("pods": bytes), once that the container whose cgroup is SCOPE has no process left ("dead"), and what the API server says
of each of NAMESPACE's pods ("pod"). It ends when it is killed.
"""

import json
import sys
import threading
import time
from pathlib import Path

from api_link import events

PODS = Path("/sys/fs/cgroup/kubepods.slice")
PERIOD = 0.02

out, scope, namespace = open(sys.argv[1], "a", buffering=1), Path(sys.argv[2]), sys.argv[3]
writing = threading.Lock()


def note(**what) -> None:
    with writing:
        out.write(json.dumps({"t": time.time(), **what}) + "\n")


def working_set() -> int:
    used = int((PODS / "memory.current").read_text())
    for line in (PODS / "memory.stat").read_text().splitlines():
        if line.startswith("inactive_file "):
            return max(0, used - int(line.split()[1]))
    return used


def empty(cgroup: Path) -> bool:
    try:
        return "populated 0" in (cgroup / "cgroup.events").read_text()
    except OSError:
        return True


def watch_memory() -> None:
    dead = False
    while True:
        note(pods=working_set())
        if not dead and empty(scope):
            dead = True
            note(dead=True)
        time.sleep(PERIOD)


def watch_api() -> None:
    for event in events(f"/api/v1/namespaces/{namespace}/pods?watch=1"):
        pod = event["object"]
        note(pod=pod["metadata"]["name"], uid=pod["metadata"]["uid"], what=event["type"],
             phase=pod["status"].get("phase"), reason=pod["status"].get("reason"),
             going="deletionTimestamp" in pod["metadata"])


threading.Thread(target=watch_api, daemon=True).start()
watch_memory()
