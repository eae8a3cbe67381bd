# SPDX-License-Identifier: Apache-2.0
"""The proof of an eviction on a real node: why, and the last minute before it."""

import json

from node import Node, Pod, kubelet_configuration

MEMORY = "2G"


def under_pressure(node):
    """One bystander, and a hog that is evicted; its record."""
    node.run_pod(Pod("web", "burstable", {"memory": "300Mi"}), "--hold 150M")
    node.run_pod(Pod("hog"), "--hold 1M --after 4 --until 4G")
    record, = node.wait_for_evictions(1)
    assert record["pod"]["name"] == "hog", record
    return record


def test_why_explains_an_eviction_and_shows_its_last_minute(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        record = under_pressure(node)
        told = vm.run("headroomctl why hog", check=True).out
        print("\n".join(f"    {line}" for line in told.splitlines()))
        for words in ("default/hog (BestEffort, priority 0) was evicted", "below its hard threshold of 300Mi",
                      "first of those who may be evicted", "within its request", "SIGKILL is sent", "a mark a second"):
            assert words in told, (words, told)
        minute = json.loads(vm.run("headroomctl why --json", check=True).out)["minute"]
        last = minute["turns"][-1]
        assert last["ms"] == 0 and last["available"]["memory.available"] == record["available"], last
        assert last["met"], last
        assert len(minute["seconds"]) >= 3 and not minute["seconds"][0]["below"], minute["seconds"]
        assert minute["pods"][-1]["pods"][0]["name"] == "hog", minute["pods"][-1]
        assert node.vm.run("headroomctl why nobody").code == 1
