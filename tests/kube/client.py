# SPDX-License-Identifier: Apache-2.0
"""headroom-kube under test: the program as built, an audit log that is written as headroomd would, and its state."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/headroom-kube"
NODE = "n1"


def node_summary(**values) -> str:
    """What headroom-kube writes in the annotation headroom.io/status, as of now."""
    return json.dumps({"time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")} | values)


class Client:
    """One node's: `evict()` is a line of the audit log, `start()` and `kill()` lives of the program."""

    def __init__(self, folder: Path, api, after="delete", timeout="1s", listen="", metrics=None, scheduling=None, extender=None, **settings):
        self.folder, self.api, self.process = folder, api, None
        self.log, self.node_status = folder / "log/evictions.jsonl", folder / "node.json"
        self.status_file, self.state_file = folder / "run/status.json", folder / "state/pending-evictions.json"
        for name in ("log", "run", "state"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.log.touch()
        config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "headroom": {
            "listen": listen, "auditLog": str(self.log), "nodeName": NODE, "nodeStatus": str(self.node_status),
            "kubernetes": {"runDirectory": str(folder / "run"), "stateDirectory": str(folder / "state"), "metrics": metrics or {},
                           "scheduling": scheduling or {}, "extender": extender or {},
                           "api": {"url": api.url, "caFile": str(api.ca), "tokenFile": str(api.token_file),
                                   "timeout": timeout, "afterEviction": after, **settings}}}}
        (folder / "headroom.yaml").write_text(json.dumps(config))
        self.output = open(folder / "headroom-kube.log", "ab")

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill(signal.SIGTERM)
        self.output.close()

    def start(self, takes_part=True):
        """takes_part: it reads the audit log, which it does not where the API server is too old."""
        before = self.looked_at()
        self.process = subprocess.Popen([PROGRAM, "--config", self.folder / "headroom.yaml"], stdout=self.output,
                                        stderr=self.output, stdin=subprocess.DEVNULL)
        # What is written from now on is news to it.
        self.wait(lambda: self.looked_at() != before and self.state_file.exists() == takes_part, 20, "it did not start")
        return self

    def start_extender(self, port) -> None:
        self.process = subprocess.Popen([PROGRAM, "extender", "--config", self.folder / "headroom.yaml"], stdout=self.output,
                                        stderr=self.output, stdin=subprocess.DEVNULL)

        def ready():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
            except OSError:
                return False
        self.wait(ready, 20, "the extender is not ready")

    def looked_at(self):
        try:
            return self.status_file.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def kill(self, how=signal.SIGKILL) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(20)

    def evict(self, namespace, name, uid, **more) -> None:
        line = {"time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "outcome": "evicted",
                "pod": {"namespace": namespace, "name": name, "uid": uid, "qos": "BestEffort", "priority": 0},
                "signal": "memory.available", "kind": "hard", "action": "kill",
                "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. "} | more
        with open(self.log, "a") as log:
            log.write(json.dumps(line) + "\n")

    def rotate_log(self) -> None:
        os.replace(self.log, f"{self.log}.1")
        self.log.touch()

    def write_node(self, **holds) -> None:
        """node.json, as headroomd keeps it; MemoryPressure=True."""
        conditions = [{"type": kind, "status": str(holds.get(kind, False)), "lastHeartbeatTime": "2026-11-20T22:50:00Z",
                       "lastTransitionTime": "2026-11-20T22:50:00Z", "reason": "", "message": ""}
                      for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "CPUPressure")]
        fresh = self.node_status.with_suffix(".new")
        fresh.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "status": {"conditions": conditions}}))
        os.replace(fresh, self.node_status)

    def state(self, part="api") -> dict:
        try:
            return json.loads(self.status_file.read_text()).get(part, {})
        except (FileNotFoundError, ValueError):
            return {}

    def waiting(self) -> int:
        """Evictions taken from the log that are not reported yet, as its durable state has it."""
        return len(json.loads(self.state_file.read_text())["value"]["pending_evictions"])

    def wait(self, done, seconds, what):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                said = (self.folder / "headroom-kube.log").read_text(errors="replace")
                raise AssertionError(f"{what} within {seconds} s; state {self.state()}\n{said[-3000:]}")
            if self.process and self.process.poll() is not None:
                raise AssertionError("it ended:\n" + (self.folder / "headroom-kube.log").read_text(errors="replace"))
            time.sleep(0.02)
