# SPDX-License-Identifier: Apache-2.0
"""A browser on this machine looks at a real daemon's page while an eviction happens."""

import sys
import tempfile
import threading
import time
from pathlib import Path

from forwarded import forwarded
from lab import Skip
from node import PORT, Node, Pod, kubelet_configuration

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "page"))

import browser  # noqa: E402

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = PORT


class Watcher(threading.Thread):
    """A browser that waits for the eviction of a pod; rows() once it has seen it, or given up."""

    def __init__(self, url: str, pod: str, ready: Path, seconds: int = 0):
        super().__init__(daemon=True)
        self.words = [url, pod, str(ready), *([str(seconds)] if seconds else [])]
        self.ready, self.error, self.rows = ready, None, []

    def run(self):
        try:
            self.rows = browser.look("watch.mjs", *self.words, timeout=300)
        except Exception as error:  # reported by the test's own thread
            self.error = error

    def wait_until_it_looks(self):
        deadline = time.monotonic() + 180
        while not self.ready.exists():
            assert self.is_alive() and time.monotonic() < deadline, f"the browser sees no page: {self.error}"
            time.sleep(0.2)

    def finish(self) -> list[dict]:
        self.join(240)
        assert not self.error, self.error
        return self.rows


def test_an_eviction_is_seen_as_it_happens(vm):
    try:
        browser.browser(), browser.node(), browser.modules()
    except browser.NoBrowser as reason:
        raise Skip(str(reason)) from None
    with Node(vm) as node, forwarded(vm) as target, tempfile.TemporaryDirectory() as folder:
        node.start(kubelet_configuration(hard="300Mi"))
        node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}, priority=100), "--hold 150M")
        watcher = Watcher(f"http://{target}/", "default/hog", Path(folder) / "ready")
        watcher.start()
        watcher.wait_until_it_looks()
        node.run_pod(Pod("hog"), "--hold 1M --rate 60M --until 4G")
        record, = node.wait_for_evictions(1)
        recorded_at = time.monotonic()
        assert record["pod"]["name"] == "hog", record
        rows = watcher.finish()
        print(f"    shown on the page {time.monotonic() - recorded_at:.1f} s after the record, proof read and browser ended")
        faults = [row for row in rows if row["status"] != "passed"]
        assert len(rows) == 1 and not faults, faults
