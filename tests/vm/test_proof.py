# SPDX-License-Identifier: Apache-2.0
"""The proof of an eviction on a real node: why, and the last minute before it."""

import json

from node import Node, Pod, kubelet_configuration

KERNELS = ("6.12",)
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
        output = vm.run("headroomctl why hog", check=True).out
        print("\n".join(f"    {line}" for line in output.splitlines()))
        for words in ("default/hog (BestEffort, priority 0) was ", "below its hard threshold of 300Mi",
                      "first of the pods that may be evicted", "within its request", "SIGKILL is sent", "one mark per second"):
            assert words in output, (words, output)
        minute = json.loads(vm.run("headroomctl why --json", check=True).out)["flight_recording"]
        last = minute["turns"][-1]
        assert last["ms"] == 0 and last["available"]["memory.available"] == record["available"], last
        assert last["met"], last
        assert len(minute["seconds"]) >= 3 and not minute["seconds"][0]["below"], minute["seconds"]
        assert minute["pods"][-1]["pods"][0]["name"] == "hog", minute["pods"][-1]
        assert node.vm.run("headroomctl why absent").code == 1
        assert "Its ten-second loop would have acted" in output, output
        assert 0 <= record["kubelet"]["later_by_ms"] <= 10000, record["kubelet"]
        page = node.metrics()
        for series in ("headroom_shadow_lead_seconds_count 1", "headroom_shadow_choices_total{choice=",
                       'headroom_forecast_error_seconds_count{signal="memory.available"}'):
            assert series in page, series
        assert "forecasts were off by:  memory.available" in vm.run("headroomctl status", check=True).out


def test_a_recording_is_replayed_with_the_same_decisions_and_another_policy_decides_otherwise(vm):
    with Node(vm) as node:
        node.start(kubelet_configuration(hard="300Mi"))
        vm.spawn("exec /opt/headroom/bin/headroomctl record --for 60s --json -o /tmp/proof.rec >/tmp/proof.said 2>&1",
                 unit="headroom-test-record.service")
        under_pressure(node)
        vm.wait_until("! systemctl is-active --quiet headroom-test-record.service", timeout=150)
        said = json.loads(vm.run("cat /tmp/proof.said", check=True).out)
        assert said["file"] == "/tmp/proof.rec" and said["bytes"] > 10_000, said
        same = vm.run("headroomctl replay --expect-same /tmp/proof.rec")
        print("\n".join(f"    {line}" for line in same.out.splitlines()))
        assert same.code == 0 and "\nidentical\n" in same.out and "kill default/hog" in same.out, same
        vm.put(kubelet_configuration(hard="600Mi").encode(), "/tmp/other.yaml")
        other = vm.run("headroomctl replay --config /tmp/other.yaml /tmp/proof.rec")
        print("\n".join(f"    {line}" for line in other.out.splitlines()))
        assert other.code == 1 and "in the recording" in other.out and "later)" in other.out, other
        replayed = json.loads(vm.run("headroomctl replay --json --config /tmp/other.yaml /tmp/proof.rec").out)
        killed = [answer for answer in replayed["turns"] if answer["replayed"]]
        assert killed[0]["replayed"][0]["threshold"] == 600 << 20, killed[0]
        assert vm.run("headroomctl replay /etc/hostname").code == 2
        assert 'headroom_dropped_total{component="recording"} 0' in node.metrics()
        # Only root may ask for it: no other user may make the daemon work for it.
        assert vm.run("setpriv --reuid=65534 --regid=65534 --clear-groups headroomctl record -o - --for 1s >/dev/null").code == 1
