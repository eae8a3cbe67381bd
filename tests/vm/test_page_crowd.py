# SPDX-License-Identifier: Apache-2.0
"""A browser on this machine looks at a real daemon's page of a thousand pods: what it costs, and an eviction meanwhile."""

import tempfile
from pathlib import Path

import crowd
from forwarded import forwarded
from node import PORT, Node, Pod, kubelet_configuration
from test_page import Watcher

KERNELS = ("6.12",)
MEMORY = "4G"
METRICS_PORT = PORT
PODS = 1000
SECONDS = 60


def test_a_thousand_pods_are_looked_at(vm):
    """Less than 1 % of a core for the page's own thread, axe finds nothing, nothing is complained of, and the eviction is seen."""
    with Node(vm) as node, forwarded(vm) as target, tempfile.TemporaryDirectory() as folder:
        crowd.make_pods(vm, PODS)
        node.start(kubelet_configuration(hard="300Mi"))
        vm.wait_until(f"[ $(headroomctl status --json | grep -o '\"qos\"' | wc -l) -ge {PODS} ]", timeout=60)
        watcher = Watcher(f"http://{target}/", "default/hog", Path(folder) / "ready", SECONDS)
        watcher.start()
        watcher.wait_until_it_looks()
        node.run_pod(Pod("hog"), "--hold 1M --rate 100M --until 8G")
        record, = node.wait_for_evictions(1, timeout=120)
        assert record["pod"]["name"] == "hog", record
        row, = watcher.finish()
        assert row["status"] == "passed", row
        print(f"    of a core: the page's thread {row['cost']['page']} %, all of the browser {row['cost']['browser']} %")
        assert row["cost"]["page"] < 1, row["cost"]
